"""Base for launchers that give each job a detached process on this machine, so that a run outlives its kernel."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import reprlib
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rlnb.errors import RlnbError, require_linux
from rlnb.hooks import plugins
from rlnb.records.layout import JobDir
from rlnb.spec import Json, Manifest
from rlnb.storage import entries, files
from rlnb.storage.clock import SILENT_AFTER_S, age_s
from rlnb.storage.serial import from_json

_MOST_PID = 2**31 - 1
"""Largest number that Linux can take as the id of a process."""


class Hosts:
    """The hosts that this process has started, kept so that their exit status is collected."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, argv: Sequence[str], log: Path) -> int:
        """Start a detached host whose output is appended to a log, which is no link; return the host's process id."""
        if sys.platform != "linux":
            require_linux("A job")
        self._processes = [process for process in self._processes if process.poll() is None]
        with entries.open_to_add(log) as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a kernel's interrupt or shutdown signals its process group
            )
        self._processes.append(process)
        return process.pid


@dataclass(frozen=True, kw_only=True, slots=True)
class HostProcess:
    """A process on one machine. Its start time distinguishes it from a later process with the same id."""

    host: str
    """Name of the machine."""
    pid: int
    created_s: float
    """Start of the process, in seconds since the epoch."""

    @classmethod
    def of(cls, pid: int) -> HostProcess:
        """Return this machine's process with the given id."""
        import psutil

        return cls(host=socket.gethostname(), pid=pid, created_s=psutil.Process(pid).create_time())

    def alive(self) -> bool | None:
        """Return whether the process still runs; None on another machine.

        Raises:
            RlnbError: The id is not that of a process.
        """
        import psutil

        if not 0 < self.pid <= _MOST_PID:
            raise RlnbError(f"pid={reprlib.repr(self.pid)} is not the id of a process.")
        if self.host != socket.gethostname():
            return None
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_s) <= 1.0
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


class DetachedLauncher:
    """Base of launchers whose jobs each belong to a detached process of this machine, the job's host.

    The host itself checks whether its job was cancelled. A cluster launcher does its other work through
    :class:`rlnb.launchers.DetachedJob`.
    """

    module: ClassVar[str]
    """Module that Python runs as the host, with the job's folder as its argument."""
    log = "host.log"
    """Name of the file in the job's folder that holds the host's own output."""
    job_ids: ClassVar[str] = r"[0-9A-Za-z][\w.:@\[\]-]{0,99}"
    """Regular expression that matches an id of the launcher's queue as a whole. Ids are read from records and become
    arguments of the queue's commands, so it must not match an option. Set it to the form of the queue's ids."""
    hosts: ClassVar[Hosts] = Hosts()
    """Hosts started by this process, shared by its launchers, since a launcher may serve one training only."""

    @staticmethod
    def gpu_ranks(manifest: Manifest) -> int:
        """Return the number of ranks on each node that use a GPU, if the device of the training is a GPU.

        The ranks whose role has ``cpu=True`` use none.
        """
        with contextlib.suppress(RlnbError):  # a number of ranks that does not fit the roles is a problem of its own
            return plugins.gpu_ranks(manifest)
        return manifest.resources.nproc_per_node

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return the argv that starts the host of a job."""
        return [sys.executable, "-P", "-m", self.module, str(job_dir)]

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        """Start the host of a job whose ``command.json`` exists."""
        return handle_of(self.hosts.start(self.argv(job_dir), job_dir / self.log))

    def own_handle(self) -> Mapping[str, Json]:
        """Return the handle of a job whose host is this process."""
        return handle_of(os.getpid())

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the host still runs; None on another machine."""
        return from_json(HostProcess, handle, ignore_unknown=True).alive()

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Withdraw a job whose host is gone.

        A living host polls for the cancel file itself. A signal could arrive before its handler is installed.
        """
        if not self.host_lives(self._alive_or_unknown(handle, job_dir), job_dir):
            record = JobDir(job_dir).submitted
            ids = (files.read_json(record, files.RECORD_BYTES) or {}).get("jobs")
            self.withdraw(job_dir, [self.checked_id(one, record) for one in ids] if isinstance(ids, list) else [])

    def checked_id(self, number: object, record: Path) -> str:
        """Return an id of the queue that a record names, once it is sure that it has the form of one.

        Args:
            number: The id.
            record: File that names it, for the error.

        Raises:
            RlnbError: The id does not have the form of :attr:`job_ids`. No command may get it.
        """
        if isinstance(number, str | int) and re.fullmatch(self.job_ids, str(number), re.ASCII):
            return str(number)
        kind = getattr(self, "name", "its queue")
        raise RlnbError(f"{record}: {reprlib.repr(number)} is not the id of a job of {kind}. Move the file away.")

    def _alive_or_unknown(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return :meth:`alive`; None for a damaged handle, which must not keep a run from being cancelled."""
        try:
            return self.alive(handle, job_dir)
        except RlnbError:
            return None

    def host_lives(self, alive: bool | None, job_dir: Path) -> bool:
        """Return whether the host of a job lives.

        Args:
            alive: The same, as far as this machine can tell; None if the host may live on another machine, so that its
                heartbeat decides.
            job_dir: Folder of the job.
        """
        return self.host_silence_s(job_dir) < SILENT_AFTER_S if alive is None else alive

    def host_silence_s(self, job_dir: Path) -> float:
        """Return the seconds since the last heartbeat of a job's host; infinity before its first."""
        return age_s(JobDir(job_dir).host_alive)

    def in_queue(self, job_dir: Path, ids: Sequence[str]) -> bool | None:
        """Return whether a job is still in the cluster's queue; None if that is unknown.

        Args:
            job_dir: Folder of the job.
            ids: Ids that the queue gave the job.
        """
        return None

    def withdraw(self, job_dir: Path, ids: Sequence[str]) -> None:
        """Take a job whose host is gone out of the cluster's queue. A launcher without a queue has nothing to do.

        Args:
            job_dir: Folder of the job.
            ids: Ids that the queue gave the job.
        """


def handle_of(pid: int) -> Mapping[str, Json]:
    """Return the handle of a process of this machine, as the JSON of :class:`HostProcess`."""
    return dataclasses.asdict(HostProcess.of(pid))
