"""Pictures of a training, taken only while there is a viewer, and within a set share of the training's time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.configs.cameras import FREE, CameraPose
from rlnb.errors import RlnbError, unknown
from rlnb.records.camera_files import Frame, FrameRequest, FrameWriter
from rlnb.records.layout import RunDir
from rlnb.worker.cameras import rig
from rlnb.worker.cameras.rig import ADDED, missed_is_inf
from rlnb.worker.cameras.spectator import Spectator
from rlnb.worker.isaac import isaaclab

LOOK_S = 0.5
"""Seconds between two checks for a viewer."""
LEAST_INTERVAL_S = 0.03
"""Minimum number of seconds between two frames: a screen cannot show more."""

if TYPE_CHECKING:
    import numpy as np

    Images = Mapping[str, np.ndarray]


class View:
    """Shows an env that is being stepped, to viewers that request frames through the run's folder.

    Args:
        env: The env, as gymnasium made it.
        run: Folder of the run.
    """

    def __init__(self, env: Any, run: RunDir) -> None:
        self._env = isaaclab.task_env(env)
        self._writer = FrameWriter(run)
        self._wanted: FrameRequest | None = None
        self._take: FrameSource | None = None
        self._next_s = 0.0
        self._steps = self._number = 0
        self._cost_s = 0.0
        self._error = ""

    def attach(self) -> None:
        """Check for a viewer after the env's steps, from now on."""
        step = self._env.step

        def stepped(action: Any) -> Any:
            outcome = step(action)
            self._steps += 1
            now = time.monotonic()
            if now >= self._next_s:
                self._next_s = now + self._look()
            return outcome

        self._env.step = stepped

    def _look(self) -> float:
        """Take a frame if there is a viewer; return the number of seconds until the next check."""
        try:
            request = self._writer.wanted()
            if request is None:
                self._wanted = self._take = None
                return LOOK_S
            rig.finish_gpu(self._env.device)  # the step's own work is not a cost of the frame
            start_s = time.monotonic()
            if request is not self._wanted and not self._aimed(request):
                self._wanted, self._take, self._number, self._cost_s = request, None, 0, 0.0
            self._show(request)
        except Exception as exc:  # a failed picture must not end a training
            self._fail(f"{type(exc).__name__}: {exc}")
            return LOOK_S
        self._cost_s = time.monotonic() - start_s
        if self._number == 1:  # the first frame may include compiling kernels: the next one may cost less
            return LOOK_S
        return max(LEAST_INTERVAL_S, self._cost_s / max(request.share, 1e-3))

    def _aimed(self, request: FrameRequest) -> bool:
        """Aim the camera if a request differs from the last one only in this; return whether it does."""
        last, taker = self._wanted, self._take
        if last is None or taker is None or dataclasses.replace(request, aim=last.aim) != last:
            return False
        self._wanted = request
        taker.aim(request.aim)
        return True

    def _show(self, request: FrameRequest) -> None:
        if self._take is None:
            self._take = FrameSource(self._env, request)
        images = self._take()
        self._writer.show(self._frame(self._cost_s, "", images))
        self._number += 1

    def _frame(self, cost_s: float, error: str, images: Images) -> Frame:
        token = self._wanted.token if self._wanted else ""
        return Frame(
            number=self._number,
            step=self._steps,
            cost_s=cost_s,
            error=error,
            token=token,
            images=images,
            place=self._take.place if self._take and images else None,
        )

    def _fail(self, error: str) -> None:
        try:
            self._writer.show(self._frame(0.0, error, {}))
        except OSError:
            return  # a full disk, say: the training itself reports it


class FrameSource:
    """Takes pictures of some envs, with the task's own cameras or else with a spectator.

    A task's own cameras are read unchanged. If the task's observations come from its cameras, a picture costs only a
    copy. Otherwise a picture renders all envs, as the task itself would, and several times with an RTX renderer.

    Args:
        env: The task's own env.
        request: Cameras, data types, size, and the number of envs, from the first.
        envs: Numbers of the envs, in place of the first ones.

    Raises:
        RlnbError: The task has no such camera, or the camera does not give such a data type during a training.
    """

    def __init__(self, env: Any, request: FrameRequest, envs: Sequence[int] | None = None) -> None:
        from isaaclab.sensors import Camera

        self._env, self._data_types = env, request.data_types
        self._rows = list(range(min(request.num_envs, env.num_envs)) if envs is None else envs)
        cameras = {name: sensor for name, sensor in env.scene.sensors.items() if isinstance(sensor, Camera)}
        self._spectator: Spectator | None = None
        self._sensors: dict[str, Any] = {}
        if not cameras:
            _check_added(request)
            self._spectator = Spectator(env, self._rows, request.size, request.aim)
            return
        if request.aim != FREE:
            names = ", ".join(cameras)
            raise RlnbError(f"{request.aim} aims an added camera, but this task has its own: {names}. Leave it out.")
        for name in request.cameras:
            if name not in cameras:
                raise unknown("camera", name, cameras, has="The task has")
        self._sensors = {name: cameras[name] for name in request.cameras or cameras}
        for name, sensor in self._sensors.items():
            for data_type in request.data_types:
                if data_type not in sensor.cfg.data_types:
                    raise RlnbError(
                        f"Camera {name!r} renders {', '.join(sensor.cfg.data_types)} in this training, not {data_type}."
                    )

    def aim(self, aim: CameraPose) -> None:
        """Aim the spectator anew."""
        if self._spectator is not None:
            self._spectator.trail.aim(aim)

    @property
    def place(self) -> CameraPose | None:
        """Current place of the spectator; None if the task has cameras."""
        return self._spectator.trail.place() if self._spectator is not None else None

    def __call__(self) -> Images:
        """Return the current pictures, by camera and data type."""
        if self._spectator is not None:
            return {f"{ADDED}/rgb": self._spectator.picture()}
        rig.render_rtx(self._env, rig.unread_pictures(self._sensors.values()), rig.SETTLING_FRAMES)
        return {
            f"{name}/{data_type}": missed_is_inf(
                sensor.data.output[data_type].torch[self._rows].cpu().numpy().copy(), data_type, sensor.cfg
            )
            for name, sensor in self._sensors.items()
            for data_type in self._data_types or sensor.cfg.data_types
        }


def _check_added(request: FrameRequest) -> None:
    """Check that a camera that is added can meet a request."""
    for data_type in request.data_types:
        if data_type != "rgb":
            raise RlnbError(
                f"This task has no camera. A camera that is added while it trains shows only rgb, not {data_type}."
            )
    for name in request.cameras:
        if name != ADDED:
            raise RlnbError(f"No camera named {name!r}: this task has none. Leave cameras out and one is added.")
