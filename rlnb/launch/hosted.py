"""Launchers whose jobs each belong to a detached process of this machine, so that a run outlives its kernel."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.spec import Json
from rlnb.storage.serial import from_json, to_json

_hosts: list[subprocess.Popen[bytes]] = []
"""Processes that this one started, kept to collect their exit status."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostProcess:
    """A process on one machine. The time of its start tells it from a later process with the same number."""

    host: str
    """Name of the machine."""
    pid: int
    created_s: float
    """Start of the process, in seconds since the epoch."""

    @classmethod
    def of(cls, pid: int) -> HostProcess:
        """Return the process of this machine that has this number."""
        import psutil

        return cls(host=socket.gethostname(), pid=pid, created_s=psutil.Process(pid).create_time())

    def alive(self) -> bool | None:
        """Return whether the process still runs; None on another machine."""
        import psutil

        if self.host != socket.gethostname():
            return None
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_s) <= 1.0
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


class HostedLauncher:
    """Base of launchers whose jobs each belong to a detached process of this machine, the job's host.

    The host sees by itself that the user cancelled its job. A launcher for a cluster does the rest through
    :class:`rlnb.HostedJob`.
    """

    log = "host.log"
    """File in the job's folder that takes the host's own output."""

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return the argv that starts the host of a job."""
        raise NotImplementedError

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
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

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the host still runs; None on another machine."""
        return from_json(HostProcess, handle, ignore_unknown=True).alive()

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Do nothing. The host polls for the cancel file; a signal could arrive before its handler is installed."""

    def waits_for(self, handle: Mapping[str, Json], job_dir: Path) -> Sequence[str]:
        """Return an empty list. Only the cluster's queue knows the jobs ahead of this one."""
        return ()


def handle_of(pid: int) -> Mapping[str, Json]:
    """Return the handle of a process of this machine, as the JSON of :class:`HostProcess`."""
    handle: Mapping[str, Json] = to_json(HostProcess.of(pid))
    return handle
