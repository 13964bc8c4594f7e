"""The living simulator of this kernel. It is started when first needed, and replaced when a run takes it or it ends."""

from __future__ import annotations

import atexit
import html
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from rlnb.settings import options
from rlnb.simulation.process import SimulatorProcess
from rlnb.spec import Task
from rlnb.tasks import requests
from rlnb.tasks.requests import Request
from rlnb.tasks.task import as_task

A = TypeVar("A")
FRESH_AFTER_S = 10.0
"""Seconds before a replacement is started after a run has taken the last living simulator. Starting both at once would
delay the run's first iteration."""

_current: SimulatorProcess | None = None
_keep = True
_starting = threading.RLock()


class Simulator:
    """The living simulator process of this kernel: Isaac Lab loaded, ready to make an env in a fraction of a second.

    Previews, evaluations, exports and checks go to it, one at a time, and the next training with one process adopts
    it; a fresh one then starts behind it. It ends with this kernel, and is replaced when it ends before.
    """

    def __init__(self, python: str | None, asset_root: str | None) -> None:
        self._settings = python, asset_root

    @property
    def state(self) -> Literal["starting", "idle", "busy", "none"]:
        """Whether it waits, works, or does not exist (a request starts it); "starting" until its first answer."""
        worker = self._worker
        if worker is None:
            return "none"
        if not worker.answered:
            return "starting"
        return "busy" if worker.busy else "idle"

    @property
    def pid(self) -> int | None:
        """Process id of the worker; None where there is none."""
        worker = self._worker
        return worker.pid if worker else None

    @property
    def memory_gib(self) -> float:
        """Memory it holds now (resident set)."""
        worker = self._worker
        return worker.memory_bytes / 2**30 if worker else 0.0

    @property
    def requests(self) -> int:
        """Requests that it has answered."""
        worker = self._worker
        return worker.answered if worker else 0

    @property
    def log(self) -> Path | None:
        """File of its output."""
        worker = self._worker
        return worker.log if worker else None

    def compile(self, task: Task | str) -> float:
        """Compile and load what a task needs (physics and rendering kernels), by making its env once.

        Returns:
            Seconds it took.
        """
        return request(requests.Compile(task=as_task(task)), *self._settings, warm=True).seconds

    def wait(self) -> Simulator:
        """Wait until it answers; start it if there is none."""
        request(requests.Ping(), *self._settings, warm=True)
        return self

    def restart(self) -> Simulator:
        """End it and start a fresh one, in the background."""
        shut_down()
        living_process(*self._settings)
        return self

    def close(self) -> None:
        """End it. The next request starts a fresh one."""
        shut_down()

    @property
    def _worker(self) -> SimulatorProcess | None:
        fits = _current is not None and (_current.python, _current.asset_root) == self._settings
        return _current if _current is not None and fits and _current.alive else None

    def __repr__(self) -> str:
        if self._worker is None:
            return "Simulator(none; the next preview starts one)"
        return f"Simulator({self.state}, pid {self.pid}, {self.memory_gib:.2f} GiB, {self.requests} requests)"

    def _repr_html_(self) -> str:
        log = f"<br><small>log: {html.escape(str(self.log))}</small>" if self.log else ""
        return f"<b>{html.escape(repr(self))}</b>{log}"


def simulator(python: str | None = None, asset_root: str | None = None) -> Simulator:
    """Return this kernel's living simulator, starting it in the background if there is none.

    Args:
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
    """
    settings = python or options.python, asset_root or options.asset_root
    living_process(*settings)
    return Simulator(*settings)


def request(
    request: Request[A],
    python: str | None = None,
    asset_root: str | None = None,
    *,
    warm: bool | None = None,
    meanwhile: Callable[[A], None] | None = None,
) -> A:
    """Have a simulator do something and return its answer: the living one, or a process for this request only.

    Args:
        request: The request.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        warm: Whether the living simulator does it; None is ``rlnb.options.warm``.
        meanwhile: Called with each interim value before the answer.

    Raises:
        RlnbError: The worker refused, with the reason; of the class that the error had in the worker.
        WorkerError: The task's own code failed, or the worker ended; with traceback or log.
    """
    python, asset_root = python or options.python, asset_root or options.asset_root
    if options.warm if warm is None else warm:
        return living_process(python, asset_root).request(request, meanwhile=meanwhile)
    worker = start_process(python, asset_root)
    try:
        return worker.request(request, meanwhile=meanwhile)
    finally:
        worker.close()


def living_process(python: str | None = None, asset_root: str | None = None) -> SimulatorProcess:
    """Return the living simulator for these settings, starting one if there is none."""
    global _current
    python, asset_root = python or options.python, asset_root or options.asset_root
    with _starting:
        if _current and _current.alive and (_current.python, _current.asset_root) == (python, asset_root):
            return _current
        shut_down()
        _current = start_process(python, asset_root)
        return _current


def start_process(python: str | None, asset_root: str | None) -> SimulatorProcess:
    """Start a process that is no living simulator; the caller closes it."""
    return SimulatorProcess(python, asset_root, Path(tempfile.mkdtemp(prefix="rlnb-warm-")) / "worker.log")


def idle_process(python: str | None, asset_root: str | None) -> SimulatorProcess | None:
    """Return the living simulator if there is one with these settings and it has nothing to do."""
    fits = _current and (_current.python, _current.asset_root) == (python, asset_root)
    return _current if _current and fits and _current.alive and not _current.busy else None


def let_go(python: str | None, asset_root: str | None) -> None:
    """Forget the living simulator, which a run has taken; start a fresh one when that run's own start-up is over."""
    global _current
    _current = None
    if not _keep:
        return
    timer = threading.Timer(FRESH_AFTER_S, _start_fresh, (python, asset_root))
    timer.daemon = True
    timer.start()


def _start_fresh(python: str | None, asset_root: str | None) -> None:
    """Start a worker unless one was needed meanwhile: with other settings, it may be in the middle of a request."""
    with _starting:
        if _current is None or not _current.alive:
            living_process(python, asset_root)


def keep_none() -> None:
    """Start no fresh worker after a run took the last one: for a command that ends with its run."""
    global _keep
    _keep = False


@atexit.register
def shut_down() -> None:
    """End the living simulator, if there is one."""
    global _current
    if _current is not None:
        _current.close()
    _current = None
