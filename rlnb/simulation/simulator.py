"""The living simulator of this kernel, which starts when it is first needed.

A training borrows it and gives it back at its end. If a training lasts longer than ``SPARE_AFTER_S``, a spare simulator
starts at a low priority, for previews and further trainings.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import psutil

from rlnb.errors import FreshProcessError, RlnbError
from rlnb.launch.local import gpu_count
from rlnb.launch.slots import holders
from rlnb.records.layout import JobDir
from rlnb.settings import options
from rlnb.simulation.process import SimulatorProcess
from rlnb.spec import Task
from rlnb.storage import files
from rlnb.tasks import requests
from rlnb.tasks.request import Request
from rlnb.tasks.task import as_task

logger = logging.getLogger(__name__)
A = TypeVar("A")
SPARE_AFTER_S = 10.0
"""Seconds between the adoption of a living simulator by a run and the start of a spare one. An earlier start would
delay the run's first iteration."""
SPARE_BYTES = 6 * 2**30
"""Bytes of memory that must be free for a spare simulator."""
SPARE_CORES = 4
"""CPU cores that a machine needs for a spare simulator. On two cores, its start made a training of 60 iterations 6 %
slower (benchmarks/RESULTS.md)."""
BESIDE_S = 60.0
"""Seconds without a request after which the simulator of a machine with GPUs ends if a run trains there."""
BACK_WITHIN_S = 3.0
"""Seconds to wait for the simulator of a training that has just ended."""
IDLE_POLL_S = 10.0
"""Seconds between two looks at whether the living simulator is idle."""

_current: SimulatorProcess | None = None
_lent: dict[SimulatorProcess, JobDir] = {}
"""Living simulators that runs have borrowed, with the jobs that they do."""
_keep = True
_starting = threading.RLock()
_is_back = threading.Condition(_starting)


class Simulator:
    """The living simulator of this kernel: a process that has loaded Isaac Lab and makes an env in under a second.

    The simulator answers previews, evaluations, exports and checks, one at a time. The next training with one process
    adopts it and gives it back at its end. If the training lasts, a spare simulator starts in the background, unless
    the training uses a GPU, or the machine has fewer than 4 cores or less than 6 GiB of free memory. A simulator ends
    with its kernel, and on a machine with NVIDIA GPUs after ``rlnb.options.warm_idle_s`` seconds without a request, or
    a minute if a run of this machine's queue trains; the next request starts a fresh one.
    """

    def __init__(self, python: str | None, asset_root: str | None) -> None:
        self._settings = python, asset_root

    @property
    def state(self) -> Literal["starting", "idle", "busy", "none"]:
        """State of the simulator, ``"starting"`` until its first answer, then ``"idle"`` or ``"busy"``.

        ``"none"`` is the state without a simulator; the next request starts one.
        """
        worker = self._worker
        if worker is None:
            return "none"
        if not worker.answered:
            return "starting"
        return "busy" if worker.busy else "idle"

    @property
    def pid(self) -> int | None:
        """Process id of the worker; None without one."""
        worker = self._worker
        return worker.pid if worker else None

    @property
    def memory_gib(self) -> float:
        """Resident memory of the simulator now, in GiB."""
        worker = self._worker
        return worker.memory_bytes / 2**30 if worker else 0.0

    @property
    def gpu_memory_gib(self) -> float:
        """Memory of all GPUs that the simulator holds now, in GiB.

        0.0 without a GPU, and where the driver does not report the memory of a process: below WSL, and in a container
        that has process ids of its own.
        """
        worker = self._worker
        return worker.gpu_memory_bytes / 2**30 if worker else 0.0

    @property
    def requests(self) -> int:
        """Number of requests that the simulator has answered."""
        worker = self._worker
        return worker.answered if worker else 0

    @property
    def log(self) -> Path | None:
        """File with the simulator's output; None without a simulator."""
        worker = self._worker
        return worker.log if worker else None

    def compile(self, task: Task | str) -> float:
        """Compile and load the physics and rendering kernels of a task, by making its env once.

        Returns:
            Duration in seconds.
        """
        return request(requests.Compile(task=as_task(task)), *self._settings, warm=True).seconds

    def wait(self) -> Simulator:
        """Wait until the simulator answers, starting it if necessary."""
        request(requests.Ping(), *self._settings, warm=True)
        return self

    def restart(self) -> Simulator:
        """End the simulator and start a fresh one in the background."""
        shut_down()
        living_process(*self._settings)
        return self

    def close(self) -> None:
        """End the simulator. The next request starts a fresh one."""
        shut_down()

    @property
    def _worker(self) -> SimulatorProcess | None:
        fits = _current is not None and (_current.python, _current.asset_root) == self._settings
        return _current if _current is not None and fits and _current.alive else None

    def __repr__(self) -> str:
        if self._worker is None:
            return "Simulator(none; the next request starts one)"
        gpu_gib = self.gpu_memory_gib
        memory = f"{self.memory_gib:.2f} GiB{f' and {gpu_gib:.2f} GiB of GPU memory' if gpu_gib else ''}"
        return f"Simulator({self.state}, pid {self.pid}, {memory}, {self.requests} requests)"

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
    """Send a request to the living simulator, or to a process for this request only, and return the answer.

    Args:
        request: The request.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        warm: Whether the living simulator gets the request; None is ``rlnb.options.warm``.
        meanwhile: Called with each interim value before the answer.

    Raises:
        RlnbError: The worker refused the request. The error has the same class as in the worker.
        WorkerError: The task's own code failed or the worker ended. The error contains the traceback or the log.
        FreshProcessError: A process that has just started cannot serve the request either.
    """
    python, asset_root = python or options.python, asset_root or options.asset_root
    if options.warm if warm is None else warm:
        worker = living_process(python, asset_root)
        try:
            return worker.request(request, meanwhile=meanwhile)
        except FreshProcessError as exc:  # such as a task that needs Isaac Sim after one that does not
            logger.info("A fresh living simulator serves the request. %s", exc)
            return _replaced(worker).request(request, meanwhile=meanwhile)
    worker = start_process(python, asset_root)
    try:
        return worker.request(request, meanwhile=meanwhile)
    finally:
        worker.close()


def living_process(
    python: str | None = None, asset_root: str | None = None, *, gently: bool = False
) -> SimulatorProcess:
    """Return the living simulator for these settings, starting one if there is none.

    Args:
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        gently: Whether a simulator starts at a low priority.
    """
    python, asset_root = python or options.python, asset_root or options.asset_root
    with _starting:
        _wait_for_one_that_comes_back(python, asset_root)
        if _current is not None:
            _current.settle()
        if _current and _current.alive and (_current.python, _current.asset_root) == (python, asset_root):
            _current.used_s = time.monotonic()
            return _current
        if _current is not None:
            _current.close()
        return _use(start_process(python, asset_root, gently=gently))


def _use(process: SimulatorProcess) -> SimulatorProcess:
    """Make a process this kernel's living simulator."""
    global _current
    _current = process
    threading.Thread(target=_end_when_idle, args=(process,), daemon=True, name="end when idle").start()
    return process


def _replaced(worker: SimulatorProcess) -> SimulatorProcess:
    """Return a living simulator with the settings of another one, which ends if it is still this kernel's."""
    with _starting:
        if _current is worker:
            worker.close()
        return living_process(worker.python, worker.asset_root)


def _end_when_idle(process: SimulatorProcess) -> None:
    """End an idle living simulator, so that it holds no GPU memory that a run may need. Without a GPU it stays."""
    while gpu_count() and process.alive:
        time.sleep(IDLE_POLL_S)
        with _starting:  # so that it does not end between its choice for a request and the request
            limit_s = math.inf if options.warm_idle_s is None else options.warm_idle_s
            process.end_if_idle(min(limit_s, BESIDE_S if _a_gpu_trains() else math.inf))


def _a_gpu_trains() -> bool:
    """Return whether a run of this machine's queue may use a GPU now."""
    return bool(gpu_count()) and bool(holders())


def start_process(python: str | None, asset_root: str | None, *, gently: bool = False) -> SimulatorProcess:
    """Start a worker process that is not registered as the living simulator. The caller has to close it."""
    log = Path(tempfile.mkdtemp(prefix="rlnb-warm-")) / "worker.log"
    return SimulatorProcess(python, asset_root, log, gently=gently)


def idle_process(python: str | None, asset_root: str | None) -> SimulatorProcess | None:
    """Return the living simulator if it has these settings and is idle, else None."""
    with _starting:
        _wait_for_one_that_comes_back(python, asset_root)
        if _current is not None:
            _current.settle()
        fits = _current and (_current.python, _current.asset_root) == (python, asset_root)
        if not (_current and fits and _current.alive and not _current.busy):
            return None
        _current.used_s = time.monotonic()
        return _current


def _wait_for_one_that_comes_back(python: str | None, asset_root: str | None) -> None:
    """Wait for the simulator of a training that has ended, if this kernel has no other. Call it with the lock."""
    deadline = time.monotonic() + BACK_WITHIN_S
    while _current is None or not _current.alive:
        ended = [
            process
            for process, job in _lent.items()
            if (process.python, process.asset_root) == (python, asset_root) and files.there(job.result)
        ]
        if not ended or not _is_back.wait(deadline - time.monotonic()):
            return


def lend(worker: SimulatorProcess, job: JobDir, task: Task) -> None:
    """Note that a run has adopted the living simulator, and start a spare one if the run lasts.

    Args:
        worker: The simulator.
        job: The run's job.
        task: The run's task, with which the spare makes itself familiar.
    """
    global _current
    if not _keep:
        worker.give_up()
        return
    with _starting:
        _current = None if _current is worker else _current
        _lent[worker] = job
    threading.Thread(target=_take_back, args=(worker,), daemon=True, name="take back").start()
    timer = threading.Timer(SPARE_AFTER_S, _start_spare, (worker, job, task))
    timer.daemon = True
    timer.start()


def _take_back(worker: SimulatorProcess) -> None:
    """Wait for the end of the run that has borrowed a simulator, and keep the simulator if there is no better one."""
    is_back = worker.is_back()
    with _is_back:
        wanted = _lent.pop(worker, None) is not None and not _a_gpu_trains()
        has_other = _current is not None and _current.alive and (_current.answered or _current.busy)
        if is_back and wanted and not has_other:
            if _current is not None:  # it has only begun to start
                _current.close()
            _use(worker)
        elif is_back:
            worker.close()
        _is_back.notify_all()


def _start_spare(lent: SimulatorProcess, job: JobDir, task: Task) -> None:
    """Start a spare simulator while a job uses another one, unless the job may need what it would take."""
    with _starting:
        if _lent.get(lent) != job or (_current is not None and _current.alive) or _a_gpu_trains():
            return
        if len(os.sched_getaffinity(0)) < SPARE_CORES:
            logger.info("No spare simulator starts, since this machine has fewer than %d cores.", SPARE_CORES)
            return
        if psutil.virtual_memory().available < SPARE_BYTES:
            logger.info("No spare simulator starts, since less than %.0f GiB are free.", SPARE_BYTES / 2**30)
            return
        with contextlib.suppress(RlnbError):  # only a preparation; a request with the same error will report it
            living_process(lent.python, lent.asset_root, gently=True).prepare(task)


def keep_none() -> None:
    """Let the living simulator end with the run that adopts it, for commands that end with their run."""
    global _keep
    _keep = False


@atexit.register
def shut_down() -> None:
    """End the living simulator, if there is one. Those that runs have borrowed end with their runs."""
    global _current
    with _starting:
        if _current is not None:
            _current.close()
        _current = None
        _lent.clear()
