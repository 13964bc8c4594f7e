"""``rlnb.debug``: an env that is stepped one call at a time, with its values by name and breakpoints in its code."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import linecache
import os
import queue
import secrets
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rlnb.configs.cameras import valid_aim
from rlnb.configs.checks import check_task
from rlnb.display.pictures import flowing, tiled
from rlnb.display.status import status
from rlnb.display.table import cell, table
from rlnb.errors import RlnbError
from rlnb.interactive.debug_adapter import Adapter, Frame
from rlnb.interactive.simulator import Simulator
from rlnb.protocol.requests import Close, Debug, EnvData, Listen, Picture, Read, Replay, Request, Reset, Step
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.spec import Task
from rlnb.storage.files import whole
from rlnb.tasks.task import as_task, task_card

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

A = TypeVar("A")
D = TypeVar("D", bound="Debugger")
POLL_S = 0.05


class Stop:
    """A breakpoint at which the env's code has stopped. Nothing else can use the simulator until it goes on."""

    def __init__(self, debugger: Debugger, adapter: Adapter, thread: int) -> None:
        self._debugger, self._adapter, self._thread = debugger, adapter, thread
        self._frames = adapter.frames(thread)

    @property
    def place(self) -> str:
        """File, line and function where the code has stopped."""
        return _place(self._frames[0])

    @property
    def stack(self) -> list[str]:
        """File, line and function of each call, the innermost first."""
        return [_place(frame) for frame in self._frames]

    @property
    def variables(self) -> dict[str, str]:
        """The local variables as text, by name."""
        return self._adapter.variables(self._frames[0].id)

    def __getitem__(self, expression: str) -> str:
        """Return the value of a variable or an expression, such as ``"reward.shape"``, as text.

        Raises:
            RlnbError: The expression fails.
        """
        return self._adapter.evaluate(self._frames[0].id, expression)

    def resume(self) -> EnvStep | Stop:
        """Go on to the next breakpoint, or to the end of the step."""
        return self._debugger._go_on(self._thread, "continue")

    def next(self) -> EnvStep | Stop:
        """Execute this line."""
        return self._debugger._go_on(self._thread, "next")

    def into(self) -> EnvStep | Stop:
        """Go on to the first line of the function that this line calls."""
        return self._debugger._go_on(self._thread, "stepIn")

    def out(self) -> EnvStep | Stop:
        """Go on until this function returns."""
        return self._debugger._go_on(self._thread, "stepOut")

    def _source(self) -> str:
        linecache.checkcache(self._frames[0].file)
        return linecache.getline(self._frames[0].file, self._frames[0].line).strip()

    def __repr__(self) -> str:
        lines = [f"  {name} = {value}" for name, value in self.variables.items()]
        return "\n".join([f"stopped at {self.place}: {self._source()}", *lines])

    def _repr_html_(self) -> str:
        head = f"<b>stopped at {html.escape(self.place)}</b><pre>{html.escape(self._source())}</pre>"
        return head + table(("variable", "value"), [*self.variables.items()])


class Debugger:
    """An env in the warm simulator that is stepped one call at a time. Made by :func:`rlnb.debug`.

    ``debugger["robot.data.joint_pos"]`` is a value of the env by its dotted path. The next env closes it.
    """

    def __init__(self, task: Task, request: Debug | Replay, python: str | None, asset_root: str | None) -> None:
        self._task, self._interpreter = task, (python, asset_root, placement.chosen())
        self._adapter: Adapter | None = None
        self._listens = False
        self._lines: dict[str, dict[int, str]] = {}
        self._functions: list[str] = []
        self._running: Future[EnvData] | None = None
        self._stop: Stop | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="rlnb-debug-", ignore_cleanup_errors=True)
        data = self._request(dataclasses.replace(request, out=self._folder.name))
        self.missing = data.missing
        """Variables of a snapshot that the env of a replay does not have; empty for any other env."""
        self.first = step_of(data)
        """What the env returned from its first reset."""
        self.last = self.first
        """What the env returned last."""

    def reset(self, seed: int | None = None) -> EnvStep | Stop:
        """Reset the env.

        Args:
            seed: Seed of the env; None goes on with its random numbers.

        Returns:
            The observations, or the breakpoint at which the code has stopped.
        """
        return self._run(Reset(seed=seed))

    def step(self, actions: Any = None, *, steps: int = 1) -> EnvStep | Stop:
        """Step the env.

        Args:
            actions: Actions of each step, of shape (num_envs, actions); None takes random ones, or zeros, as
                :func:`rlnb.debug` was told.
            steps: Number of steps.

        Returns:
            What the last step returned, or the breakpoint at which the code has stopped.

        Raises:
            RlnbError: The actions do not fit the env, the code has stopped at a breakpoint, or the env was closed.
            WorkerError: The task's own code failed.
        """
        rows = None
        if actions is not None:
            import numpy as np

            rows = tuple(tuple(map(float, row)) for row in np.atleast_2d(np.asarray(actions, dtype=float)))
        return self._run(Step(steps=steps, actions=rows))

    def __getitem__(self, path: str) -> np.ndarray | str:
        """Return a value of the env by its dotted path: an array, or the ``repr`` of anything else.

        Args:
            path: Attributes, keys and names of the scene's entities, such as ``"robot.data.joint_pos"``.

        Raises:
            RlnbError: There is no such value. The error lists the names that exist.
        """
        reading = self._request(Read(path=path))
        return arrays_of(reading.file)["value"] if reading.file else reading.text

    def names(self, path: str = "") -> tuple[str, ...]:
        """Return the names below a value of the env, such as ``"robot.data"``; those of the env itself by default."""
        return self._request(Read(path=path)).names

    def picture(
        self,
        envs: Sequence[int] = (0,),
        *,
        size: tuple[int, int] = (320, 240),
        eye: Sequence[float] | None = None,
        target: Sequence[float] | None = None,
    ) -> Image:
        """Return a picture of some envs by each camera of the task, or by one that follows the robots.

        Args:
            envs: Numbers of the envs.
            size: Width and height of the picture of an env, in pixels, if the task has no camera.
            eye: Position of such a camera in the frame of each env, in metres; None shows the robots whole.
            target: Point in the middle of its picture, in the same frame; None is the middle of the robots.

        Raises:
            CheckError: The eye or the target is not a position.
            RlnbError: There is no such env, or no camera of the task gives colours.
        """
        from PIL import Image

        reading = self._request(Picture(envs=tuple(envs), size=size, aim=valid_aim("picture", eye, target)))
        return flowing([Image.fromarray(tiled(array)) for array in arrays_of(reading.file).values()])

    def break_at(self, where: int | str, *, file: str | None = None, condition: str = "") -> Debugger:
        """Set a breakpoint, at which :meth:`step` stops and returns a :class:`Stop`.

        Args:
            where: A line of the file, or the name of a function, such as ``"_get_rewards"``, which stops at its first
                statement.
            file: Path of the file; None is the module of the task's cell.
            condition: Expression; the code stops only if it is true. Not for a function.

        Raises:
            RlnbError: No breakpoint is possible there, or debugpy is missing in the worker's interpreter.
        """
        if isinstance(where, str) and condition:
            raise RlnbError("condition= is not possible for a function. Use the line of its first statement.")
        adapter = self._attached()
        if isinstance(where, str):
            self._functions.append(where)
            adapter.set_functions(self._functions)
            return self
        file = file or self._task.source
        if file is None:
            raise RlnbError(f"{self._task.id} is not a task of a cell, so the line has no file. Use file=.")
        linecache.checkcache(file)
        if not linecache.getline(file, where).strip():
            raise RlnbError(f"Line {where} of {file} has no code. Use a line that has some.")
        lines = self._lines.setdefault(file, {})
        lines[where] = condition
        if refused := adapter.set_lines(file, lines):
            del lines[where]
            raise RlnbError(f"No breakpoint is possible in line {where} of {file}: {'; '.join(refused)}")
        return self

    def clear(self) -> Debugger:
        """Remove all breakpoints."""
        if self._adapter is not None:
            self._adapter.clear()
        self._lines, self._functions = {}, []
        return self

    def listen(self) -> str:
        """Let the debugger of an editor attach, in place of :meth:`break_at`.

        Only this user can attach, from this machine. In VS Code, use a configuration of the type
        ``"debugpy"`` and the request ``"attach"``, with ``"connect": {"host": "127.0.0.1", "port": PORT}`` and
        ``"justMyCode": false``.

        Returns:
            The address, ``"127.0.0.1:PORT"``.
        """
        self._lines, self._functions = {}, []
        if self._adapter is not None:
            self._adapter.close()
            self._adapter = None
        self._listens = True
        return f"127.0.0.1:{self._request(Listen()).port}"

    def close(self) -> None:
        """Close the env. A simulator with breakpoints ends, also if its code has stopped."""
        living = Simulator(*self._interpreter)
        if self._adapter is not None:
            self._adapter.close()
        if self._listens or self._is_running:
            living.close()
        elif living.state != "none":
            self._request(Close())
        self._adapter, self._listens, self._stop = None, False, None

    @property
    def _is_running(self) -> bool:
        return self._running is not None and not self._running.done()

    def _attached(self) -> Adapter:
        if self._adapter is None:
            token = secrets.token_hex(32)
            self._adapter = Adapter(self._request(Listen(token=token)).port, token)
            self._listens = True
        return self._adapter

    def _request(self, request: Request[A]) -> A:
        self._refuse_if_stopped()
        # Always use the warm simulator, even if rlnb.options.warm is False: the env must survive this request.
        return pool.request(request, *self._interpreter, warm=True)

    def _refuse_if_stopped(self) -> None:
        if self._stop is None and self._adapter is not None:
            with contextlib.suppress(queue.Empty):  # an interrupted step has reached a breakpoint
                self._stop = Stop(self, self._adapter, self._adapter.stops.get_nowait())
        if not self._is_running:
            self._running = self._stop = None
        elif self._stop is None:
            raise RlnbError("An interrupted step is still under way. Wait for its end, or use debugger.close().")
        else:
            raise RlnbError(f"The env has stopped at {self._stop.place}. Use debugger.stopped.resume() first.")

    @property
    def stopped(self) -> Stop | None:
        """The breakpoint at which the code has stopped; None if it has not."""
        return self._stop

    def _run(self, request: Reset | Step) -> EnvStep | Stop:
        if self._adapter is None:
            return self._ended(step_of(self._request(request)))
        self._refuse_if_stopped()
        self._running = _in_the_background(lambda: pool.request(request, *self._interpreter, warm=True))
        return self._until_stopped()

    def _go_on(self, thread: int, how: str) -> EnvStep | Stop:
        if self._adapter is None or self._running is None:
            raise RlnbError("This breakpoint has been left. Use the newest one, debugger.stopped.")
        self._stop = None
        self._adapter.go_on(thread, how)
        return self._until_stopped()

    def _until_stopped(self) -> EnvStep | Stop:
        """Wait for the end of a step, or for the next stop in it."""
        assert self._adapter is not None
        assert self._running is not None
        while not self._running.done():
            with contextlib.suppress(queue.Empty):
                self._stop = Stop(self, self._adapter, self._adapter.stops.get(timeout=POLL_S))
                return self._stop
        running, self._running = self._running, None
        return self._ended(step_of(running.result()))

    def _ended(self, outcome: EnvStep) -> EnvStep:
        """Note what the env returned from a reset or a step."""
        self.last = outcome
        return outcome

    def __repr__(self) -> str:
        place = f", stopped at {self._stop.place}" if self._stop is not None else ""
        return f"Debugger({self._task.id!r}{place})"


def debug(
    task: Task | str,
    *,
    num_envs: int = 2,
    actions: Literal["random", "zero"] = "random",
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
) -> Debugger:
    """Make the env of a task in the warm simulator, and step it one call at a time.

    Args:
        task: A task, or its name.
        num_envs: Number of envs to make.
        actions: Actions of steps that get none, ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        seed: Seed of the env.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.

    Raises:
        CheckError: The task has a problem; no env was made.
        WorkerError: The task's own code failed.
    """
    task = dataclasses.replace(as_task(task), num_envs=whole(num_envs))
    python, asset_root = python or options.python, asset_root or options.asset_root
    close_former()
    check_task(task, task_card(task, python=python, asset_root=asset_root))
    request = Debug(task=task, num_envs=whole(num_envs), actions=actions, seed=whole(seed), device=device, out="")
    with status(f"Making the env of {task.id}"):
        return noted(Debugger(task, request, python, asset_root))


_open: weakref.WeakSet[Debugger] = weakref.WeakSet()
"""The debuggers of this kernel; at most the newest one has an env."""


def close_former() -> None:
    """Close the env of the former debugger, whose breakpoints would stop the next one."""
    for former in [*_open]:
        former.close()


def noted(debugger: D) -> D:
    """Note that a debugger has an env; return it."""
    _open.add(debugger)
    return debugger


def _in_the_background(call: Callable[[], A]) -> Future[A]:
    """Call a function in a thread that does not keep this process alive, as one of a pool does."""
    future = Future[A]()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as exc:
            future.set_exception(exc)

    threading.Thread(target=run, daemon=True, name="rlnb-debug").start()
    return future


def _place(frame: Frame) -> str:
    return f"{frame.file}, line {frame.line}, in {frame.name}"


# -- what a step shows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EnvStep(Mapping[str, "np.ndarray"]):
    """What an env returned from a reset or a step: arrays by name.

    The names are ``"observations/<group>"``, ``"rewards"`` (float, of shape (num_envs,)), ``"terminated"`` and
    ``"truncated"`` (bool, of shape (num_envs,)), and ``"terms/<name>"`` (float, of shape (num_envs,), weighted and per
    second) in a manager-based env. In a task with several agents, the name of the agent follows the first three. A
    reset returns observations only.
    """

    arrays: Mapping[str, np.ndarray]
    """The arrays by name."""
    log: Mapping[str, float]
    """Values that the env has logged (``extras["log"]``)."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def _rows(self) -> list[list[str]]:
        rows = []
        for name, array in self.arrays.items():
            numbers = (array.min(), array.mean(), array.max()) if array.size else ()
            rows.append([name, " x ".join(map(str, array.shape)), *(cell(float(number)) for number in numbers)])
        return rows

    def __repr__(self) -> str:
        return "\n".join(["EnvStep", *("  ".join(row) for row in self._rows())])

    def _repr_html_(self) -> str:
        logged = table(("logged", ""), [(name, cell(value)) for name, value in self.log.items()]) if self.log else ""
        return table(("name", "shape", "min", "mean", "max"), self._rows()) + logged


def step_of(data: EnvData) -> EnvStep:
    return EnvStep(arrays=arrays_of(data.file), log=data.log)


def arrays_of(file: str) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file, and delete the file."""
    import numpy as np

    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    os.unlink(file)
    return arrays
