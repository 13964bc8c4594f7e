"""Launchers whose jobs each belong to a detached process of this machine, so that a run outlives its kernel."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class Hosts:
    """The hosts that this process has started, kept so that their exit status is collected."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, argv: Sequence[str], log: Path) -> int:
        """Start a host apart from this process, with its output at the end of a log; return its process id."""
        self._processes = [process for process in self._processes if process.poll() is None]
        with open(log, "ab") as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a kernel's interrupt or shutdown signals its process group
            )
        self._processes.append(process)
        return process.pid


class HostedLauncher:
    """Base of launchers whose jobs each belong to a detached process of this machine: their host.

    The host sees by itself that its job was asked to end; a launcher for a cluster does the rest through
    :class:`rlnb.HostedJob`.
    """

    log = "host.log"
    """Where the host's own words go, in the job's folder."""
    hosts: ClassVar[Hosts] = Hosts()
    """Shared by all launchers of this process: a launcher is often made for one training only."""

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return what starts the host of a job."""
        raise NotImplementedError

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Start the host of a job whose ``command.json`` is written."""
        return handle_of(self.hosts.start(self.argv(job_dir), job_dir / self.log))

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
