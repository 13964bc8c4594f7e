"""The processes below an agent: what they are doing, and that none is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

STACKS_S = 1.0
"""Seconds that processes have to write where they are."""


def kill_descendants(grace_s: float) -> None:
    """End every process below this one: SIGTERM, then SIGKILL until none is left.

    This process is a subreaper, so what detached itself (setsid, double fork) is still below it.
    """
    import psutil

    me = psutil.Process()
    for process in me.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + grace_s
    while left := _living(me):
        if time.monotonic() > deadline:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(0.02)


def _living(me: object) -> list:  # type: ignore[type-arg]
    import psutil

    living = []
    for process in me.children(recursive=True):  # type: ignore[attr-defined]
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
            else:
                living.append(process)
    return living


def workers() -> list[psutil.Process]:
    """Return the workers below this process that are visible: Python itself, no wrapper, torchrun or container."""
    import psutil

    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            is_worker = "rlnb.worker" in argv and "torch.distributed.run" not in argv
            if is_worker and process.name().startswith("python"):
                found.append(process)
    return found


def ask_for_stacks() -> int:
    """Have every worker below this one write where each of its threads is, to its own output; return how many can.

    A worker catches SIGUSR1 with Python's faulthandler. The signal would end any other process, and the client of a
    container would forward it.
    """
    import psutil

    asked = 0
    for process in workers():
        if _catches(process.pid, signal.SIGUSR1):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGUSR1)
                asked += 1
    time.sleep(STACKS_S if asked else 0.0)
    return asked


def _catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal, from the mask that Linux shows of it (proc(5))."""
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
