"""Where the simulator of a call is: on this machine, or in the job of a launcher."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

from rlnb.contracts.launchers import Launcher
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.settings import options
from rlnb.simulation.remote_job import SimulatorLauncher

P = ParamSpec("P")
R = TypeVar("R")
of_this_call: ContextVar[Launcher | None] = ContextVar("launcher", default=None)
"""Launcher of the simulator that answers the requests of the present call; None is ``rlnb.options.simulator``."""


def chosen() -> Launcher | None:
    """Return the launcher whose job holds the simulator of this call; None for a simulator on this machine."""
    return launcher_of(of_this_call.get() or options.simulator)


def launcher_of(choice: object) -> Launcher | None:
    """Return the launcher that a user has chosen for a simulator; None for this machine, whose simulator needs no job.

    Raises:
        RlnbError: The object is no launcher.
    """
    if choice is None or type(choice) is LocalLauncher:
        return None
    if not hasattr(choice, "submit"):
        calls = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
        raise RlnbError(f"{choice!r} is not a launcher for the simulator. Use one of {calls}.")
    return choice  # type: ignore[return-value]


def shares_no_folder() -> bool:
    """Return whether the simulator of this call is on a machine that shares no folder with this one."""
    return isinstance(chosen(), SimulatorLauncher)


def has_run(run: Path) -> bool:
    """Return whether the simulator of this call is on the machine where a run is of which a mirror is here.

    Args:
        run: Folder of the run here.
    """
    launcher = chosen()
    return isinstance(launcher, SimulatorLauncher) and launcher.run_there(run) is not None


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
