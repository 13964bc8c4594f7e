"""Launchers whose jobs each belong to a detached process of this machine, so that a run outlives its kernel."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_hosts: list[subprocess.Popen[bytes]] = []
"""Processes that this one started, kept to collect their exit status."""


class HostedLauncher:
    """Base of launchers whose jobs each belong to a detached process of this machine: their host.

    The host sees by itself that its job was asked to end; a launcher for a cluster does the rest through
    :class:`rlnb.HostedJob`.
    """

    log = "host.log"
    """Where the host's own words go, in the job's folder."""

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return what starts the host of a job."""
        raise NotImplementedError

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Start the host of a job whose ``command.json`` is written."""
        _hosts[:] = [host for host in _hosts if host.poll() is None]
        with open(job_dir / self.log, "ab") as log:
            host = subprocess.Popen(
                self.argv(job_dir),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a kernel's interrupt or shutdown signals its process group
            )
        _hosts.append(host)
        return handle_of(host.pid)

    def alive(self, handle: Mapping[str, Any], job_dir: Path) -> bool | None:
        """Return whether the host still runs; None on another machine."""
        if handle["host"] != socket.gethostname():
            return None
        return _process(handle) is not None

    def cancel(self, handle: Mapping[str, Any], job_dir: Path) -> None:
        """Do nothing. The host polls for the cancel file; a signal could arrive before its handler is installed."""

    def waits_for(self, handle: Mapping[str, Any], job_dir: Path) -> Sequence[str]:
        """Return nothing: a cluster's queue knows what is ahead of a job."""
        return ()


def handle_of(pid: int) -> dict[str, Any]:
    """Return what finds a process of this host again, safe against reuse of its number."""
    import psutil

    return {"host": socket.gethostname(), "pid": pid, "created_s": psutil.Process(pid).create_time()}


def _process(handle: Mapping[str, Any]) -> int | None:
    import psutil

    try:
        process = psutil.Process(handle["pid"])
        if abs(process.create_time() - handle["created_s"]) > 1.0 or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return process.pid
