"""A 3D view of a task or a trained policy in the notebook. A separate process serves it on the loopback interface, and
the browser reaches it through the Jupyter server."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from rlnb.cameras.preview import check_preview
from rlnb.cameras.scene import scene_of
from rlnb.contracts.launchers import Launcher
from rlnb.display.live_objects import live_objects
from rlnb.display.status import status
from rlnb.errors import RlnbError, refuse_other_than_text
from rlnb.protocol.requests import Hold, Push, Request, View, ViewAddress
from rlnb.records.facts import RunFacts
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.spec import EnvMode, Task
from rlnb.storage.files import whole
from rlnb.tasks.task import task_card

HEIGHT_PX = 480


class Viewer:
    """A 3D view of a running task, until the view is closed or this kernel ends."""

    def __init__(self, task: str, worker: SimulatorProcess, request: View) -> None:
        self.task = task
        """Id of the task."""
        self._worker = worker
        self._addresses: queue.Queue[ViewAddress | Exception] = queue.Queue()
        self._ended: Exception | None = None
        thread = threading.Thread(target=self._serve, args=(request,), name=f"rlnb view {task}", daemon=True)
        thread.start()
        answer = self._addresses.get()
        if isinstance(answer, Exception):
            worker.close()
            raise answer
        self.port = answer.port
        """Port of the view on this machine's loopback interface."""
        self.commands = answer.commands
        """The range from which the task samples each component of its velocity commands, in m/s or rad/s, by the name
        of the command and of the component. A task of the direct workflow has none."""
        live_objects.add(self, close=self.close, alive=lambda: self.alive)

    def _serve(self, request: View) -> None:
        try:
            self._worker.request(request, meanwhile=self._addresses.put)
        except Exception as exc:
            self._ended = exc
        self._addresses.put(self._ended or RlnbError(f"The view of {self.task} was closed."))

    @property
    def url(self) -> str:
        """Address of the view for a browser on this machine."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def alive(self) -> bool:
        """Whether the view is still running."""
        return self._worker.alive and self._ended is None

    @property
    def error(self) -> str | None:
        """Reason why the view ended by itself; None if it did not."""
        return str(self._ended) if self._ended is not None else None

    def push(self, velocity: float | Sequence[float] = 1.0) -> None:
        """Push the robots: change the velocity of their bases, in all envs of the view.

        Args:
            velocity: Change of the velocity, m/s: a speed, for which each env gets a random horizontal direction; or
                ``(x, y)`` or ``(x, y, z)`` in the frame of the world. No value may be beyond 10.

        Raises:
            RlnbError: The bases of all robots are fixed, the velocity is not possible, or the view has ended.
            WorkerError: The view does not answer, for example because its simulation is paused in the browser.
        """
        values = [velocity] if isinstance(velocity, Real) else velocity
        self._ask(Push(velocity=_numbers("velocity", values, "(1.0, 0.0)")))

    def command(self, name: str, value: Sequence[float] | None) -> None:
        """Hold a velocity command in all envs of the view, whatever the task samples.

        The policy sees the value from the next step on. It is held across resets until another call or the browser
        changes it.

        Args:
            name: Name of the command, from :attr:`commands`.
            value: Value of each component: ``lin_vel_x`` and ``lin_vel_y`` in m/s and ``ang_vel_z`` in rad/s, in the
                frame of the robot. A value may be outside the range of the task, but not beyond 10. None lets the task
                sample the command again.

        Raises:
            NotFoundError: The task has no velocity command of this name.
            RlnbError: The value is not possible, or the view has ended.
            WorkerError: The view does not answer, for example because its simulation is paused in the browser.
        """
        refuse_other_than_text("name", name)
        self._ask(Hold(name=name, value=None if value is None else _numbers("value", value, "(1.0, 0.0, 0.0)")))

    def _ask(self, request: Request[None]) -> None:
        if not self.alive:
            raise RlnbError(f"The view of {self.task} has ended. Call rlnb.view again.")
        self._worker.side_request(request)

    def close(self) -> None:
        """End the view."""
        self._worker.close()

    def __repr__(self) -> str:
        return f"Viewer({self.task!r}, {self.url if self.alive else 'ended'})"

    def _repr_mimebundle_(self, **_: Any) -> Any:
        from rlnb.display.server import frame

        return frame(repr(self), self.port, f"{self.task} in 3D", alive=self.alive, height_px=HEIGHT_PX)


def _numbers(name: str, values: Any, example: str) -> tuple[float, ...]:
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise RlnbError(f"{name}={values!r} is not a row of numbers. Use {name}={example}.") from None


@placement.takes_launcher
def view(
    task: Task | RunFacts | str,
    *,
    num_envs: int = 4,
    actions: Literal["random", "zero"] = "random",
    policy: RunFacts | str | None = None,
    checkpoint: str | Path | None = None,
    trust: bool = False,
    mode: EnvMode | None = None,
    speed: float = 1.0,
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    launcher: Launcher | None = None,
) -> Viewer:
    """Show a task in 3D, in the output of the cell and behind a link. The scene can be rotated and zoomed.

    Controls beside the scene push the robot and hold its velocity command, as :meth:`Viewer.push` and
    :meth:`Viewer.command` do.

    The view runs in a separate process, so that the warm simulator stays free. The browser reaches the view through
    the Jupyter server (jupyter-server-proxy) at any base URL. Needs the extra ``rlnb[view]``.

    Args:
        task: A task or its name; or a run, which stands for its task and its policy.
        num_envs: Number of envs to show.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        policy: A run, or its id, whose policy acts instead.
        checkpoint: Name or path of one of that run's checkpoints; None is the last.
        trust: Whether to show a run of another user, and to load a checkpoint that holds more than weights.
        mode: As in :meth:`rlnb.Run.evaluate`; without a policy, None is ``"train"``.
        speed: Simulated seconds per second, if the machine is fast enough.
        seed: Seed of the env.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``. The browser reaches the
            view through the encrypted connection to the job.

    Raises:
        CheckError: The task or a number has a problem; no env was made.
        RlnbError: viser is not installed.
        WorkerError: The task's own code failed. The error contains the traceback.
    """
    scene = scene_of(
        task, policy=policy, checkpoint=checkpoint, trust=trust, mode=mode, python=python, asset_root=asset_root
    )
    task, python, asset_root = scene.task, scene.python, scene.asset_root
    card = task_card(task, python=python, asset_root=asset_root)
    num_envs, seed = whole(num_envs), whole(seed)
    check_preview(task, card, None, None, num_envs, None, 0, None, actions, (64, 64))
    if not speed > 0:
        raise RlnbError(f"speed={speed!r} is not a positive number. Use speed=1.0 for real time.")
    python, asset_root = python or options.python, asset_root or options.asset_root
    with status(f"Opening a view of {task.id}"):
        request = View(
            task=task,
            num_envs=num_envs,
            actions=actions,
            policy=scene.policy,
            mode=scene.mode,
            speed=speed,
            seed=seed,
            device=device,
        )
        return Viewer(task.id, pool.start(python, asset_root, placement.chosen()), request)
