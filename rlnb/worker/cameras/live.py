"""Pictures of a training, taken only while there is a viewer, and within a set share of the training's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError, unknown
from rlnb.records.camera_files import Frame, FrameWriter, Wanted
from rlnb.records.layout import RunDir
from rlnb.worker.cameras import gpu, rtx
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
    Take = Callable[[], Images]


class View:
    """Shows an env that is being stepped, to viewers that request frames through the run's folder.

    Args:
        env: The env, as gymnasium made it.
        run: Folder of the run.
    """

    def __init__(self, env: Any, run: RunDir) -> None:
        self._env = isaaclab.task_env(env)
        self._writer = FrameWriter(run)
        self._wanted: Wanted | None = None
        self._take: Take | None = None
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
            gpu.finish(self._env.device)  # the step's own work is not a cost of the frame
            start_s = time.monotonic()
            if request is not self._wanted:
                self._wanted, self._take, self._number, self._cost_s = request, None, 0, 0.0
            self._show(request)
        except Exception as exc:  # a failed picture must not end a training
            self._fail(f"{type(exc).__name__}: {exc}")
            return LOOK_S
        self._cost_s = time.monotonic() - start_s
        if self._number == 1:  # the first frame may include compiling kernels: the next one may cost less
            return LOOK_S
        return max(LEAST_INTERVAL_S, self._cost_s / max(request.share, 1e-3))

    def _show(self, request: Wanted) -> None:
        if self._take is None:
            self._take = taker(self._env, request)
        images = self._take()
        self._writer.show(self._frame(self._cost_s, "", images))
        self._number += 1

    def _frame(self, cost_s: float, error: str, images: Images) -> Frame:
        token = self._wanted.token if self._wanted else ""
        return Frame(number=self._number, step=self._steps, cost_s=cost_s, error=error, token=token, images=images)

    def _fail(self, error: str) -> None:
        try:
            self._writer.show(self._frame(0.0, error, {}))
        except OSError:
            return  # a full disk, say: the training itself reports it


def taker(env: Any, request: Wanted, envs: Sequence[int] | None = None) -> Take:
    """Return a function that takes pictures of some envs, with the task's own cameras or else with a spectator.

    A task's own cameras are read unchanged. If the task's observations come from its cameras, a picture costs only a
    copy. Otherwise a picture renders all envs, as the task itself would, and several times with an RTX renderer.

    Args:
        env: The task's own env.
        request: Cameras, data types, size, and the number of envs, from the first.
        envs: Numbers of the envs, in place of the first ones.

    Raises:
        RlnbError: The task has no such camera, or the camera does not give such a data type during a training.
    """
    from isaaclab.sensors import Camera

    cameras = {name: sensor for name, sensor in env.scene.sensors.items() if isinstance(sensor, Camera)}
    rows = list(range(min(request.num_envs, env.num_envs)) if envs is None else envs)
    if not cameras:
        for data_type in request.data_types:
            if data_type != "rgb":
                raise RlnbError(
                    f"This task has no camera. A camera that is added while it trains shows only rgb, not {data_type}."
                )
        for name in request.cameras:
            if name != ADDED:
                raise RlnbError(f"No camera named {name!r}: this task has none. Leave cameras out and one is added.")
        spectator = Spectator(env, rows, request.size)
        return lambda: {f"{ADDED}/rgb": spectator.picture()}
    for name in request.cameras:
        if name not in cameras:
            raise unknown("camera", name, cameras, has="The task has")
    sensors = {name: cameras[name] for name in request.cameras or cameras}
    for name, sensor in sensors.items():
        for data_type in request.data_types:
            if data_type not in sensor.cfg.data_types:
                raise RlnbError(
                    f"Camera {name!r} renders {', '.join(sensor.cfg.data_types)} in this training, not {data_type}."
                )

    def take() -> Images:
        rtx.render(env, rtx.unread(sensors.values()), rtx.SETTLING_FRAMES)
        return {
            f"{name}/{data_type}": missed_is_inf(
                sensor.data.output[data_type].torch[rows].cpu().numpy().copy(), data_type, sensor.cfg
            )
            for name, sensor in sensors.items()
            for data_type in request.data_types or sensor.cfg.data_types
        }

    return take
