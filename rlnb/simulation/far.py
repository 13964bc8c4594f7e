"""Living simulators of this kernel in jobs of launchers, one for each launcher, interpreter and asset root."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import RlnbError
from rlnb.launch.local import LocalLauncher
from rlnb.settings import options
from rlnb.simulation.job import SimulatorJob, job_of, key_of
from rlnb.simulation.process import SimulatorProcess

P = ParamSpec("P")
R = TypeVar("R")
of_this_call: ContextVar[Launcher | None] = ContextVar("launcher", default=None)
"""Launcher of the simulator that answers the requests of the present call; None is ``rlnb.options.simulator``."""
_jobs: dict[str, SimulatorJob] = {}
_living: dict[str, SimulatorProcess] = {}
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


def start(launcher: Launcher, python: str | None, asset_root: str | None, *, gently: bool = False) -> SimulatorProcess:
    """Start a further simulator in the job of a launcher. The caller has to close it."""
    key = key_of(launcher, python, asset_root)
    with _lock:
        job = _jobs.get(key)
        if job is not None and job.ended:
            job.end()
        if job is None or job.ended:
            job = _jobs[key] = job_of(launcher, python, asset_root)
        return SimulatorProcess(python, asset_root, job.log, gently=gently, job=job)


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
            job.end()


def shut_down() -> None:
    """End all simulators in jobs, and the jobs."""
    with _lock:
        for process in _living.values():
            process.close()
        for job in _jobs.values():
            job.end()
        _living.clear()
        _jobs.clear()
