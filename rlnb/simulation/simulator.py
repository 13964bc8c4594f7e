"""The living simulator of this kernel, which starts when it is first needed.

A training borrows it and gives it back at its end.
"""

from __future__ import annotations

import atexit
import logging
import math
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rlnb.contracts.launchers import Launcher
from rlnb.errors import FreshProcessError
from rlnb.launch.slots import holders
from rlnb.machine import threads
from rlnb.machine.gpus import gpu_count
from rlnb.protocol.requests import Request
from rlnb.records.layout import JobDir
from rlnb.settings import options
from rlnb.simulation import far
from rlnb.simulation.process import SimulatorProcess
from rlnb.storage import files

logger = logging.getLogger(__name__)
A = TypeVar("A")
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


def request(
    request: Request[A],
    python: str | None = None,
    asset_root: str | None = None,
    launcher: Launcher | None = None,
    *,
    warm: bool | None = None,
    meanwhile: Callable[[A], None] | None = None,
) -> A:
    """Send a request to the living simulator, or to a process for this request only, and return the answer.

    Args:
        request: The request.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        launcher: Launcher whose job holds the simulator; None is that of the verb, or ``rlnb.options.simulator``.
        warm: Whether the living simulator gets the request; None is ``rlnb.options.warm``.
        meanwhile: Called with each interim value before the answer.

    Raises:
        RlnbError: The worker refused the request. The error has the same class as in the worker.
        WorkerError: The task's own code failed or the worker ended. The error contains the traceback or the log.
        FreshProcessError: A process that has just started cannot serve the request either.
    """
    python, asset_root = python or options.python, asset_root or options.asset_root
    launcher = far.refined(launcher) or far.chosen()
    if options.warm if warm is None else warm:
        worker = living_process(python, asset_root, launcher)
        try:
            return worker.request(request, meanwhile=meanwhile)
        except FreshProcessError as exc:  # such as a task that needs Isaac Sim after one that does not
            logger.info("A fresh living simulator serves the request. %s", exc)
            return _replaced(worker).request(request, meanwhile=meanwhile)
    worker = start_process(python, asset_root, launcher)
    try:
        return worker.request(request, meanwhile=meanwhile)
    finally:
        worker.close()


def living_process(
    python: str | None = None,
    asset_root: str | None = None,
    launcher: Launcher | None = None,
) -> SimulatorProcess:
    """Return the living simulator for these settings, starting one if there is none.

    Args:
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        launcher: Launcher whose job holds the simulator; None is this machine.
    """
    python, asset_root = python or options.python, asset_root or options.asset_root
    if launcher is not None:
        return far.living(launcher, python, asset_root)
    with _starting:
        _wait_for_one_that_comes_back(python, asset_root)
        if _current is not None:
            _current.settle()
        if _current and _current.alive and (_current.python, _current.asset_root) == (python, asset_root):
            _current.used_s = time.monotonic()
            return _current
        if _current is not None:
            _current.close()
        return _use(start_process(python, asset_root))


def current() -> SimulatorProcess | None:
    """Return the living simulator of this machine; None if there is none, or if a run has borrowed it."""
    return _current


def _use(process: SimulatorProcess) -> SimulatorProcess:
    """Make a process this kernel's living simulator."""
    global _current
    _current = process
    threading.Thread(target=_end_when_idle, args=(process,), daemon=True, name="end when idle").start()
    return process


def _replaced(worker: SimulatorProcess) -> SimulatorProcess:
    """Return a living simulator with the settings of another one, which ends if it is still this kernel's."""
    if worker.job is not None:
        worker.close()
        return living_process(worker.python, worker.asset_root, worker.job.launcher)
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


def start_process(python: str | None, asset_root: str | None, launcher: Launcher | None = None) -> SimulatorProcess:
    """Start a worker process that is not registered as the living simulator. The caller has to close it."""
    if launcher is not None:
        return far.start(launcher, python, asset_root)
    log = Path(tempfile.mkdtemp(prefix="rlnb-warm-")) / "worker.log"
    return SimulatorProcess(python, asset_root, log)


def idle_process(python: str | None, asset_root: str | None) -> SimulatorProcess | None:
    """Return the living simulator if it has these settings and the user's number of threads, and is idle, else None."""
    with _starting:
        _wait_for_one_that_comes_back(python, asset_root)
        if _current is not None:
            _current.settle()
        settings = python, asset_root, threads.of_user()
        fits = _current and (_current.python, _current.asset_root, _current.threads) == settings
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


def lend(worker: SimulatorProcess, job: JobDir) -> None:
    """Note that a run has adopted the living simulator.

    Args:
        worker: The simulator.
        job: The run's job.
    """
    global _current
    if worker.job is not None:
        far.lend(worker)
        return
    if not _keep:
        worker.give_up()
        return
    with _starting:
        _current = None if _current is worker else _current
        _lent[worker] = job
    threading.Thread(target=_take_back, args=(worker,), daemon=True, name="take back").start()


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


def keep_none() -> None:
    """Let the living simulator end with the run that adopts it, for commands that end with their run."""
    global _keep
    _keep = False


@atexit.register
def shut_down() -> None:
    """End the living simulators, if there are any. Those that runs have borrowed end with their runs."""
    shut_down_here()
    far.shut_down()


def shut_down_here() -> None:
    """End the living simulator of this machine, if there is one."""
    global _current
    with _starting:
        if _current is not None:
            _current.close()
        _current = None
        _lent.clear()
