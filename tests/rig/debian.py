"""Programs of Debian's packages, and their daemons, for the clusters of the test rig."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping

DOWN_S = 10.0
"""Seconds that a daemon has to stop before it is killed."""


def program(name: str) -> str:
    """Return the path of a program, which may be in a folder for administrators; empty if it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or ""


def missing(programs: Mapping[str, str]) -> list[str]:
    """Return the packages that are missing, after an attempt to install them as root.

    Args:
        programs: Package of each required program.
    """
    lacking = sorted({package for name, package in programs.items() if not program(name)})
    if lacking and os.geteuid() == 0 and shutil.which("apt-get"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *lacking]
        subprocess.run(argv, check=False, env=env)
        lacking = sorted({package for name, package in programs.items() if not program(name)})
    return lacking


def end(pid: int | None, alive: Callable[[], bool], number: signal.Signals = signal.SIGTERM) -> None:
    """End a daemon and wait until it is gone; kill it if it does not stop.

    Args:
        pid: Id of its process; None if it never started.
        alive: Returns whether it lives.
        number: Signal that ends it.
    """
    if pid is None or not alive():
        return
    os.kill(pid, number)
    deadline = time.monotonic() + DOWN_S
    while alive():
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
