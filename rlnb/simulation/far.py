"""Living simulators of this kernel in jobs of launchers, one for each launcher, interpreter and asset root."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

from rlnb.contracts.launchers import Launcher
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.settings import options
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import ANNOUNCED_S, HoldsSimulators, SimulatorJob, job_of, key_of

P = ParamSpec("P")
R = TypeVar("R")
of_this_call: ContextVar[Launcher | None] = ContextVar("launcher", default=None)
"""Launcher of the simulator that answers the requests of the present call; None is ``rlnb.options.simulator``."""
_jobs: dict[str, SimulatorJob] = {}
_living: dict[str, SimulatorProcess] = {}
_lent: set[SimulatorProcess] = set()
"""Simulators that trainings have borrowed, whose jobs therefore go on."""
_lock = threading.RLock()


def chosen() -> Launcher | None:
    """Return the launcher whose job holds the simulator of this call; None for a simulator on this machine."""
    return refined(of_this_call.get() or options.simulator)


def refined(launcher: object) -> Launcher | None:
    """Return a launcher for a simulator; None for this machine, whose simulator needs no job.

    Raises:
        RlnbError: The object is no launcher.
    """
    if launcher is None or type(launcher) is LocalLauncher:
        return None
    if not hasattr(launcher, "submit"):
        calls = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
        raise RlnbError(f"{launcher!r} is not a launcher for the simulator. Use one of {calls}.")
    return launcher  # type: ignore[return-value]


def shares_no_folder() -> bool:
    """Return whether the simulator of this call is on a machine that shares no folder with this one."""
    return isinstance(chosen(), HoldsSimulators)


def has_run(run: Path) -> bool:
    """Return whether the simulator of this call is on the machine where a run is of which a mirror is here.

    Args:
        run: Folder of the run here.
    """
    launcher = chosen()
    return isinstance(launcher, HoldsSimulators) and launcher.run_there(run) is not None


@contextlib.contextmanager
def on(launcher: Launcher | None) -> Iterator[None]:
    """Let the simulator of a launcher's job answer the requests of a block; None changes nothing."""
    token = of_this_call.set(launcher or of_this_call.get())
    try:
        yield
    finally:
        of_this_call.reset(token)


def takes_launcher(verb: Callable[P, R]) -> Callable[P, R]:
    """Let the argument ``launcher`` of a verb choose the simulator that answers its requests."""

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with on(kwargs.get("launcher")):  # type: ignore[arg-type]
            return verb(*args, **kwargs)

    return call


def living(launcher: Launcher, python: str | None, asset_root: str | None) -> SimulatorProcess:
    """Return the living simulator in a job of a launcher, starting the job if there is none."""
    key = key_of(launcher, python, asset_root)
    with _lock:
        process = _living.get(key)
        if process is not None:
            process.settle()
            if process.alive:
                return process
            if process not in _lent:
                process.close()
        _living[key] = start(launcher, python, asset_root)
        return _living[key]


def current(launcher: Launcher, python: str | None, asset_root: str | None) -> SimulatorProcess | None:
    """Return the living simulator in a job of a launcher; None if there is none."""
    process = _living.get(key_of(launcher, python, asset_root))
    return process if process is not None and process.alive else None


def all_living() -> list[SimulatorProcess]:
    """Return the living simulators in jobs."""
    return [process for process in _living.values() if process.alive]


def start(launcher: Launcher, python: str | None, asset_root: str | None) -> SimulatorProcess:
    """Start a further simulator in the job of a launcher. The caller has to close it."""
    key = key_of(launcher, python, asset_root)
    with _lock:
        job = _jobs.get(key)
        if job is not None and job.ended:
            _end(job)
        if job is None or job.ended:
            job = _jobs[key] = job_of(launcher, python, asset_root)
        return SimulatorProcess(python, asset_root, job.log, job=job)


def idle(launcher: Launcher, python: str | None, asset_root: str | None) -> SimulatorProcess | None:
    """Return the living simulator in a job of a launcher if it can train now, else None.

    It has to be idle, to see the folders of runs, and to have more than five minutes left.
    """
    process = current(launcher, python, asset_root)
    if process is None or process.job is None or isinstance(launcher, HoldsSimulators):
        return None
    process.settle()
    ends_s = process.job.ends_s
    has_time = ends_s is None or ends_s - time.time() > ANNOUNCED_S
    return process if process.alive and process.answered and not process.busy and has_time else None


def lend(process: SimulatorProcess) -> None:
    """Note that a training has borrowed a simulator. Requests start another one in the same job meanwhile."""
    with _lock:
        _lent.add(process)
    threading.Thread(target=_take_back, args=(process,), daemon=True, name="take back").start()


def _take_back(process: SimulatorProcess) -> None:
    """Wait for the end of a training, and keep its simulator if there is no other one in its job."""
    is_back, job = process.is_back(), process.job
    assert job is not None, "the simulator is in a job"
    with _lock:
        _lent.discard(process)
        key = key_of(job.launcher, process.python, process.asset_root)
        if _jobs.get(key) is not job:  # the user has given the job back meanwhile
            process.close()
            _end(job)
        elif is_back and current(job.launcher, process.python, process.asset_root) in (None, process):
            _living[key] = process
        elif is_back:
            process.close()


def _end(job: SimulatorJob) -> None:
    """End a job, or let it end with the training in it, whose connection to this kernel may be lost."""
    if any(process.job is job for process in _lent):
        return  # until the training is back
    if job.trains:
        job.let_go()
    else:
        job.end()


def restart(launcher: Launcher, python: str | None, asset_root: str | None) -> None:
    """Start a fresh simulator in the same job."""
    with _lock:
        if (process := current(launcher, python, asset_root)) is not None:
            process.close()
        living(launcher, python, asset_root)


def close(launcher: Launcher, python: str | None, asset_root: str | None) -> None:
    """End the simulator in a job of a launcher, and the job."""
    key = key_of(launcher, python, asset_root)
    with _lock:
        if (process := _living.pop(key, None)) is not None:
            process.close()
        if (job := _jobs.pop(key, None)) is not None:
            _end(job)


def shut_down() -> None:
    """End all simulators in jobs, and the jobs."""
    with _lock:
        for process in _living.values():
            process.close()
        for job in _jobs.values():
            _end(job)
        _living.clear()
        _jobs.clear()
