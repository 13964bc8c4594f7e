"""Jobs of launchers that hold warm simulators for this kernel."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import secrets
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from rlnb.contracts.launchers import Launcher
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.registry import require
from rlnb.launch.command import interpreter, own_env
from rlnb.launch.detached import HostProcess
from rlnb.launch.local import LocalLauncher
from rlnb.protocol.messages import Connected
from rlnb.protocol.tls import write_key
from rlnb.records.deadline import EXACT_S, here_s
from rlnb.records.layout import COMMAND, HANDLE, JobDir, run_dir_of
from rlnb.records.record import JobRecord
from rlnb.settings import options
from rlnb.spec import ENDED, Command, Json, Manifest, Resources, Task
from rlnb.storage import access, entries, files
from rlnb.storage.clock import age_s
from rlnb.storage.serial import from_json
from rlnb.version import __version__

logger = logging.getLogger(__name__)
RELAY = "rlnb.simulation.relay"
"""Module of a process that connects to a job, beside the job's folder."""
FOLDER = "simulators"
"""Folder below the root with the jobs of warm simulators."""
ANNOUNCED_S = 300.0
"""Seconds from the warning to the end of the walltime that it announces."""
REASON_WITHIN_S = 6.0
"""Seconds to wait for the launcher's reason for the end of a job."""
LEAVE_S = 5.0
"""Seconds that the connection that keeps a job has to end."""
KEPT_S = 24 * 3600.0
"""Seconds for which the folder of an ended job is kept."""


class SimulatorJob(ABC):
    """A job that serves warm simulators to this kernel.

    Args:
        launcher: Launcher of the job.
    """

    folder: JobDir
    """Folder of the job, on the machine of its launcher."""
    log: Path | None
    """File of this machine with the job's output; None if the file is on another machine."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self.host = ""
        """Name of the node; empty before the job has started."""
        self.ends_s: float | None = None
        """Time at which the job is ended, in seconds since the epoch; None if that is not known."""
        self.trainings: list[JobDir] = []
        """Jobs of the trainings that have borrowed simulators of this job."""
        self._timer: threading.Timer | None = None
        self._over = False
        self._note = Note(options.folders.path)

    @abstractmethod
    def relay_argv(self, *arguments: str) -> Sequence[str]:
        """Return the argv of a process whose standard streams are a connection to the job."""

    def run_there(self, run: Path) -> str | None:
        """Return the folder on the job's machine of a run in a folder here; None if it has none."""
        return str(run)

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the job has ended, as far as is known here."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The launcher and the number of the job, such as ``"slurm job 12"``."""

    @abstractmethod
    def reason(self) -> str:
        """Return why the job has ended, as its launcher says, and the end of its log. The call takes some seconds."""

    @property
    def trains(self) -> bool:
        """Whether a training in a simulator of this job may go on, with or without a connection to it."""
        return any(files.there(one.path) and not files.there(one.result) for one in self.trainings)

    def let_go(self) -> None:
        """Let the job end by itself, after the trainings in it."""
        self._over = True
        self._cancel_timer()
        self._note.remove()

    def end(self) -> None:
        """End the job, and leave its launcher's queue."""
        self.let_go()

    def note(self, connected: Connected) -> None:
        """Note what the job says when it accepts this kernel, and announce the end of its walltime in time."""
        self.host = connected.host
        ends_s = None if connected.ends_s is None else here_s(connected.ends_s, connected.now_s)
        if ends_s is not None and (self.ends_s is None or abs(ends_s - self.ends_s) > EXACT_S):
            self._cancel_timer()
            self.ends_s = ends_s
            self._timer = threading.Timer(max(0.0, ends_s - ANNOUNCED_S - time.time()), self._announce)
            self._timer.daemon = True
            self._timer.start()
        self.tell()

    def tell(self) -> None:
        """Record where the job is, for other processes of the user, such as the panel in JupyterLab."""
        self._note.write(self.place, self.host, self.ends_s)

    def _announce(self) -> None:
        assert self.ends_s is not None
        if not self.ended:
            logger.warning(
                "The warm simulator on %s ends at %s (in %.0f s), with the walltime of its job. The next request "
                "after that time starts another simulator.",
                self.host,
                _clock(self.ends_s),
                max(0.0, self.ends_s - time.time()),
            )

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def place(self) -> str:
        """The job and its node, such as ``"slurm job 12 on node3"``."""
        return self.name + (f" on {self.host}" if self.host else "")

    def __str__(self) -> str:
        if self.ends_s is None:
            return self.place
        left_s = max(0.0, self.ends_s - time.time())
        return f"{self.place} until {_clock(self.ends_s)} (in {left_s / 60:.0f} min)"


@runtime_checkable
class SimulatorLauncher(Protocol):
    """A launcher of another machine. It starts the jobs of simulators itself, since their folders are there."""

    def simulator_job(self, python: str | None, asset_root: str | None) -> SimulatorJob:
        """Start a job for warm simulators, as :func:`job_of` describes."""
        ...

    def run_there(self, run: Path) -> str | None:
        """Return the folder on the other machine of a run in a folder here; None if it has none."""
        ...


class SharedJob(SimulatorJob):
    """A job whose folder this machine sees.

    Args:
        launcher: Launcher of the job.
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root.

    Raises:
        CheckError: The launcher cannot start the job; nothing was started.
        RlnbError: There is no key for the job, or the launcher failed.
    """

    def __init__(self, launcher: Launcher, python: str | None, asset_root: str | None) -> None:
        super().__init__(launcher)
        self._hold: subprocess.Popen[bytes] | None = None
        """Connection that shows the job that this kernel lives, also while the job waits or has no simulator."""
        manifest = manifest_of(launcher, python, asset_root)
        if problems := [*_several_nodes(launcher), *launcher.check(manifest)]:
            raise CheckError(f"simulator on {launcher.name}", problems)
        access.refuse_shared(options.folders.path, (FOLDER,))  # the address and the key of the simulator lie there
        root = options.folders.path / FOLDER
        _prune(root)
        self.folder = JobDir(root / manifest.run_id / "jobs" / "0-simulator")
        try:
            self._handle = self._submit(manifest)
        except BaseException:  # also an interrupt: a job without its folder ends at its start
            entries.remove_tree(run_dir_of(self.folder.path).path, ignore_errors=True)
            raise
        self._record = JobRecord(self.folder, launcher.name)
        self.log = self.folder.log()
        self.hold()
        self.tell()

    def _submit(self, manifest: Manifest) -> Mapping[str, Json]:
        """Make the folder of the job, and submit the job; return its handle."""
        files.make_folder(self.folder.path.parent)
        entries.make(self.folder.path, 0o700)  # in a team's root, no one else may replace the key or the address
        write_key(self.folder.key)
        command = _command(manifest, self.launcher, self.folder)
        files.write_once(run_dir_of(self.folder.path).manifest, manifest)
        files.write_once(self.folder.path / COMMAND, command)
        handle = self.launcher.submit(command, self.folder.path)
        with contextlib.suppress(OSError):  # a full disk; the job's state follows from its heartbeat
            files.write_once(self.folder.path / HANDLE, handle)
        return handle

    def relay_argv(self, *arguments: str) -> Sequence[str]:
        """Return the argv of a process whose standard streams are a connection to the job."""
        return [sys.executable, "-P", "-m", RELAY, str(self.folder.path), *arguments]

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as far as is known here."""
        return self._over or self._record.state() in ENDED

    @property
    def name(self) -> str:
        """The launcher and the number of the job, such as ``"slurm job 12"``."""
        submission = self._record.submission
        return self.launcher.name + (f" job {', '.join(submission.jobs)}" if submission.jobs else "")

    def note(self, connected: Connected) -> None:
        """Note what the job says when it accepts this kernel, and show it that this kernel lives."""
        super().note(connected)
        self.hold()

    def hold(self) -> None:
        """Let the job live as long as this process, also before it has started and without a simulator."""
        if self._hold is None or self._hold.poll() is not None:
            quiet = subprocess.DEVNULL
            self._hold = subprocess.Popen(
                self.relay_argv("--hold"), stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
            )

    def reason(self) -> str:
        """Return why the job has ended, as its launcher says, or that its node is gone, and the end of its log."""
        deadline = time.monotonic() + REASON_WITHIN_S
        while (result := self._record.result) is None and time.monotonic() < deadline:
            time.sleep(0.25)
        where = f"on {self.host} " if self.host else ""
        self.let_go()
        reason = f"The warm simulator {where}does not answer any more. Its node may be down."
        if result is not None:
            reason = f"The job of the warm simulator {where}has ended: {result.error or result.outcome}."
        return f"{reason}\n{files.tail(self.folder.log())}"

    def let_go(self) -> None:
        """Let the job end by itself, after the trainings in it."""
        super().let_go()
        if self._hold is not None and self._hold.stdin is not None:
            self._hold.stdin.close()
            try:
                self._hold.wait(LEAVE_S)
            except subprocess.TimeoutExpired:  # such as on a shared folder that stands still
                self._hold.kill()

    def end(self) -> None:
        """End the job, and leave its launcher's queue."""
        super().end()
        with contextlib.suppress(OSError, RlnbError):  # the job also ends by itself once this kernel is gone
            entries.remove(self.folder.key)
            if self._record.result is None:  # a job that only seems to be dead may still occupy its node
                files.write_once(self.folder.cancel, {"time": files.now(), "save_s": 0.0})
                self.launcher.cancel(self._handle, self.folder.path)


def job_of(launcher: Launcher, python: str | None, asset_root: str | None) -> SimulatorJob:
    """Start a job for warm simulators.

    Args:
        launcher: Launcher of the job.
        python: Command of the worker's interpreter; None is that of the launcher's machine.
        asset_root: Explicit asset root.

    Raises:
        CheckError: The launcher cannot start the job; nothing was started.
        RlnbError: There is no key for the job, or the launcher failed.
    """
    if isinstance(launcher, SimulatorLauncher):
        return launcher.simulator_job(python, asset_root)
    return SharedJob(launcher, python, asset_root)


def key_of(launcher: Launcher, python: str | None, asset_root: str | None) -> str:
    """Return a key; equal keys can share a simulator."""
    return json.dumps([launcher.name, dict(launcher.settings), python, asset_root], sort_keys=True, default=str)


def manifest_of(launcher: Launcher, python: str | None, asset_root: str | None) -> Manifest:
    """Return the record by which the launcher's processes find the launcher again."""
    now = datetime.now(UTC)
    return Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-simulator-{secrets.token_hex(2)}",
        created=now.isoformat(),
        task=Task(id="simulator"),
        library=plugins.SCRIPT.name,
        resources=Resources(device="auto"),
        launcher=launcher.name,
        launcher_settings=launcher.settings,
        python=python,
        asset_root=asset_root,
        versions={"rlnb": __version__},
    )


def _command(manifest: Manifest, launcher: Launcher, folder: JobDir) -> Command:
    """Return the command that serves warm simulators on the node."""
    idle_s = math.inf if options.warm_idle_s is None else options.warm_idle_s
    python = interpreter(manifest.python)
    where = ["--loopback"] if isinstance(launcher, LocalLauncher) else []
    serve = ["-P", "-m", "rlnb.node", "--serve", str(folder.path), f"--idle={idle_s}", *where, "--", *python]
    asset_root = {"RLNB_ASSET_ROOT": manifest.asset_root} if manifest.asset_root else {}
    command = Command(argv=(*python, *serve), env={**own_env(), **asset_root}, walltime_s=launcher.walltime_s)
    return require("rlnb_wrap_command", command=command, manifest=manifest) or command


def _several_nodes(launcher: Launcher) -> list[Problem]:
    if launcher.nodes == 1:
        return []
    what = f"The launcher asks for {launcher.nodes} nodes, and a simulator uses one."
    return [Problem(what=what, fix=f"rlnb.{launcher.name}(..., nodes=1)")]


def _prune(root: Path) -> None:
    """Remove the folders of jobs that ended long ago."""
    for folder in entries.matching(root, "*"):
        job = JobDir(folder / "jobs" / "0-simulator")
        if files.there(job.result) and age_s(job.result) > KEPT_S:
            entries.remove_tree(folder, ignore_errors=True)


def _clock(time_s: float) -> str:
    return time.strftime("%H:%M", time.localtime(time_s))


# -- where the simulators are ----------------------------------------------------------------------------------------


KERNELS_FOLDER = "simulators/kernels"
"""Folder of the records, below the root."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatorRecord:
    """A warm simulator in a job of a kernel."""

    place: str
    """The job and its machine, such as ``"slurm job 12 on node3"``."""
    host: str
    """Machine of the simulator; empty as long as the job waits."""
    ends_s: float | None = None
    """Time at which the job is ended, in seconds since the epoch; None if that is not known."""
    kernel: HostProcess
    """The kernel that the simulator belongs to."""

    @property
    def state(self) -> str:
        """``"waits"``, until the job has started for the first time, or ``"lives"``."""
        return "lives" if self.host else "waits"

    @property
    def left_s(self) -> float | None:
        """Seconds until the end of the job's walltime; None if that is not known."""
        return None if self.ends_s is None else max(0.0, self.ends_s - time.time())


class Note:
    """The record of one job. It is only for display, so a full disk leaves it out.

    Args:
        root: The root of the kernel.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / KERNELS_FOLDER / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._removed = False

    def write(self, place: str, host: str, ends_s: float | None) -> None:
        """Record where the simulator is; the arguments are those of :class:`SimulatorRecord`."""
        if not self._removed:
            with contextlib.suppress(OSError, RlnbError):
                files.make_folder(self._path.parent)
                kernel = HostProcess.of(os.getpid())
                files.replace_json(self._path, SimulatorRecord(place=place, host=host, ends_s=ends_s, kernel=kernel))

    def remove(self) -> None:
        """Remove the record, for good."""
        self._removed = True
        with contextlib.suppress(OSError):
            entries.remove(self._path)


def simulator_records(root: Path) -> Sequence[SimulatorRecord]:
    """Return the warm simulators in jobs of this user's kernels on this machine, by the kernels' process ids.

    The records of kernels that were killed are removed.
    """
    places = []
    for path in sorted(entries.matching(root / KERNELS_FOLDER, "*.json"), key=lambda path: path.name):
        with contextlib.suppress(OSError, RlnbError):
            if os.lstat(path).st_uid != os.getuid():
                continue
            one = from_json(SimulatorRecord, files.read_json(path, files.RECORD_BYTES) or {}, ignore_unknown=True)
            alive = one.kernel.alive()
            if alive:
                places.append(one)
            elif alive is False:
                entries.remove(path)
    return places
