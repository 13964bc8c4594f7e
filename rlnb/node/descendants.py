"""The processes below an agent: find the workers, request their stacks, and end every process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.launch.command import TORCHRUN, runs_worker

if TYPE_CHECKING:
    import psutil

STACKS_S = 1.0
"""Seconds to wait for processes to write their stacks."""
KILLED_S = 60.0
"""Seconds that processes have to end after SIGKILL. One that waits for a driver or for a file system ends only later,
and one of another user never gets the signal."""


def descendants() -> list[psutil.Process]:
    """Return every process below this one.

    This process is a subreaper, so a process that detached itself (setsid, double fork) is still below it.
    """
    import psutil

    return psutil.Process().children(recursive=True)


def kill_descendants(grace_s: float, *, spare: Collection[psutil.Process] = ()) -> None:
    """End every process below this one: SIGTERM, then SIGKILL until none is left.

    Those that are left after ``KILLED_S`` are named in the error output, since the caller has a result to write.

    Args:
        grace_s: Seconds between the two signals.
        spare: Processes that live on.
    """
    import psutil

    for process in descendants():
        with contextlib.suppress(psutil.Error):
            if process not in spare:
                process.terminate()
    deadline = time.monotonic() + grace_s
    while processes := _living(spare):
        if time.monotonic() > deadline + KILLED_S:
            names = ", ".join(f"{process.pid} ({_name(process)})" for process in processes)
            sys.stderr.write(f"rlnb.node: these processes did not end within {KILLED_S:.0f} s of SIGKILL: {names}\n")
            return
        if time.monotonic() > deadline:
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        time.sleep(0.02)


def _name(process: psutil.Process) -> str:
    import psutil

    try:
        return process.name()
    except psutil.Error:
        return "unknown"


def _living(spare: Collection[psutil.Process]) -> list[psutil.Process]:
    """Return the processes below this one that still run, without those to spare; those that have ended are reaped."""
    import psutil

    living = []
    for process in descendants():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process in spare:
                continue
            if process.status() == psutil.STATUS_ZOMBIE:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
            else:
                living.append(process)
    return living


def workers() -> list[psutil.Process]:
    """Return the workers below this process: Python itself, not a wrapper, torchrun or the client of a container."""
    import psutil

    processes = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            is_worker = runs_worker(argv) and TORCHRUN not in argv
            if is_worker and process.name().startswith("python"):
                processes.append(process)
    return processes


def ask_for_stacks() -> int:
    """Make the workers below this process write the stack of each thread to their output; return how many can.

    A worker handles SIGUSR1 with Python's faulthandler. Other processes get no signal: it would kill most of them,
    and the client of a container would forward it.
    """
    import psutil

    count = 0
    for process in workers():
        if _catches(process.pid, signal.SIGUSR1):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGUSR1)
                count += 1
    time.sleep(STACKS_S if count else 0.0)
    return count


def _catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal, from its mask in /proc (proc(5))."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def loaded(library: str) -> bool:
    """Return whether a process below this one has loaded a shared library, by the name of its file."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError):
            if f"/{library}" in Path(f"/proc/{process.pid}/maps").read_text(errors="replace"):
                return True
    return False
