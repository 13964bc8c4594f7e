"""Base for launchers whose jobs run on another machine, which shares no folder with this one."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shlex
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rlnb.contracts.launchers import RUN_VARIABLES, Launcher
from rlnb.errors import Problem, RlnbError, RunError
from rlnb.launch.local import LocalLauncher
from rlnb.mirror.connection import Connection
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.replica import handle
from rlnb.mirror.run_files import copy
from rlnb.mirror.server import problems_of, versions
from rlnb.mirror.simulator import FarJob
from rlnb.records import remote
from rlnb.records.incidents import WaitsWriter
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.records.remote import Remote
from rlnb.records.trust import foreign_owner
from rlnb.simulation.remote_job import SimulatorJob
from rlnb.spec import Json, Manifest
from rlnb.storage import entries, files
from rlnb.storage.clock import SILENT_AFTER_S, age_s
from rlnb.storage.serial import to_json

CHECK_S = 60.0
"""Seconds within which the other machine has to answer whether it can start a run."""
START_S = 10.0
"""Seconds before the process that mirrors a run is started again, if it has not taken its lock."""
MOST_CRASHES = 3
"""Number of crashes after which the job's reason names them. The process is then started only once a minute."""
CRASHED_S = 60.0


class RemoteLauncher(ABC):
    """Base of launchers whose jobs run on another machine, reached by a command, without a shared folder.

    The folder of a run lives there, and is mirrored here by a process that outlives the kernel. There, the jobs are
    started by a launcher of that machine: the local one, or that of its queue. A subclass says how the machine is
    reached. ``rlnb-ssh`` is the example.

    Args:
        place: Name of the other machine, as its user writes it.
        python: Interpreter there, which has rlnb and the plugins of the runs.
        root: Folder of runs there; ``~`` is the home there.
        queue: Launcher of that machine, as ``{"name": ..., "settings": ...}``; None starts the jobs there itself.
        env: Environment variables of the jobs, in addition to those of that machine.
    """

    name: str
    max_running: ClassVar[None] = None
    """The other machine has a queue of its own."""
    walltime_s: ClassVar[None] = None
    """The other machine's launcher has the walltime."""
    _started: ClassVar[dict[Path, tuple[float, subprocess.Popen[bytes]]]] = {}
    """When this process started the mirror of a run, by the run's folder, and the mirror."""
    _crashes: ClassVar[Counter[Path]] = Counter()
    """Number of times that the mirror of a run has crashed since this process has started it, by the run's folder."""

    def __init__(
        self,
        place: str,
        *,
        python: str,
        root: str,
        queue: Mapping[str, Json] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.place, self.python, self.root = place, python, root
        self.env = dict(env or {})
        self._queue = dict(queue) if queue else None

    # -- what a subclass says

    @abstractmethod
    def reach(self, argv: Sequence[str]) -> Sequence[str]:
        """Return the command of this machine that runs a command on the other one, with connected standard streams.

        Args:
            argv: Program and arguments there. A program that begins with ``~/`` is below the home.
        """

    @abstractmethod
    def problem(self, code: int | None, error: str) -> Problem:
        """Return why the other machine cannot be reached, with the fix.

        Args:
            code: Exit status of the command; None if it still runs.
            error: Its error output, or why the connection ended.
        """

    # -- the launcher as rlnb sees it

    @property
    def queue(self) -> Launcher | None:
        """Launcher of the other machine; None is its local one."""
        from rlnb.hooks import plugins

        if self._queue is None:
            return None
        settings = self._queue.get("settings")
        return plugins.make_launcher(str(self._queue["name"]), settings if isinstance(settings, Mapping) else {})

    @property
    def nodes(self) -> int:
        """Number of nodes that each training gets."""
        return self.queue.nodes if self.queue else 1

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each node if a training sets no number; None is one."""
        return self.queue.nproc_per_node if self.queue else None

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that make an equal launcher."""
        return {"place": self.place, "python": self.python, "root": self.root, "queue": self._queue, "env": self.env}

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return every reason why the other machine cannot start the run, within a minute."""
        try:
            with Connection(self.argv(), self.place) as connection:
                try:
                    answer = connection.answer(self.wish("check", manifest), CHECK_S)
                except Closed as exc:
                    return [self.problem(connection.code, connection.reason(exc))]
        except OSError as exc:
            return [self.problem(127, str(exc))]
        if answer is None:
            return [self.problem(None, f"no answer within {CHECK_S:.0f} s")]
        if answer.kind == "failed":
            return [Problem(what=f"{self.place}: {answer.data.get('error')}")]
        theirs = [dataclasses.replace(one, what=f"{self.place}: {one.what}") for one in problems_of(answer)]
        return [*self._differences(answer), *theirs]

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Json]:
        """Start the process that mirrors the run of a job; it sends the job to the other machine.

        Raises:
            RunError: The run belongs to another user, whose arguments of the command would be executed again and again.
        """
        run = run_dir_of(job_dir)
        refuse_theirs(run)
        if remote.remote_of(run) is None:
            remote.write(run, Remote(place=self.place))
        job = JobDir(job_dir)
        files.write_once(remote.order(job), files.read_json(job.job))
        self._start_mirror(job_dir)
        return handle()

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the job goes on; None on a machine that does not mirror it. Asks only this machine.

        If the process that mirrors the run is gone, as after a restart or a new name of this machine, it is started
        again, but not by another user than the owner of the run.
        """
        if files.there(remote.settled(JobDir(job_dir))):
            return False
        run = run_dir_of(job_dir)
        if handle.get("host") != socket.gethostname() and is_mirrored(JobDir(job_dir)):
            return None
        begun_s, earlier = self._started.get(run.path, (float("-inf"), None))
        pause_s = CRASHED_S if self._crashes[run.path] >= MOST_CRASHES else START_S
        if time.monotonic() - begun_s >= pause_s and not is_locked(run):
            if foreign_owner(RunRecord(run.path)) is not None:
                return None
            if earlier is not None and (earlier.poll() or 0) > 0:
                self._crashes[run.path] += 1
            self._start_mirror(job_dir)
        if self._crashes[run.path] >= MOST_CRASHES and not is_locked(run):
            _explain(JobDir(job_dir))
        return True

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """See to it that the request to cancel reaches the other machine.

        Raises:
            RunError: The run belongs to another user, and no process mirrors it.
        """
        if self.alive(handle, job_dir) is None and not is_mirrored(JobDir(job_dir)):
            refuse_theirs(run_dir_of(job_dir))

    def simulator_job(self, python: str | None, asset_root: str | None) -> SimulatorJob:
        """Start a job for warm simulators on the other machine, or in its queue.

        Args:
            python: Command of the worker's interpreter there; None is :attr:`python`.
            asset_root: Explicit asset root there.

        Raises:
            CheckError: The other machine cannot start the job; nothing was started.
            RlnbError: The other machine does not answer.
        """
        return FarJob(self, python, asset_root)

    def run_there(self, run: Path) -> str | None:
        """Return the folder on the other machine of a run that is mirrored here; None if the run is not from there.

        Args:
            run: Folder of the run here.
        """
        if remote.remote_of(RunDir(run)) is None:
            return None
        settings = RunRecord(run).manifest.launcher_settings
        is_from_there = (settings.get("place"), settings.get("root")) == (self.place, self.root)
        return f"{self.root.rstrip('/')}/runs/{run.name}" if is_from_there else None

    # -- the other machine

    def argv(self, module: str = "rlnb.mirror", *arguments: str) -> Sequence[str]:
        """Return the command of this machine that runs a module of rlnb on the other one, with connected streams.

        Args:
            module: Name of the module, such as that of the other end of a mirror.
            arguments: Arguments of the module.
        """
        return self.reach([*shlex.split(self.python), "-P", "-m", module, *arguments])

    def reason(self, code: int | None, error: str) -> str:
        """Return why the other machine cannot be reached, in one line."""
        return str(self.problem(code, error).what)

    def wish(self, kind: str, manifest: Manifest, data: Mapping[str, Json] | None = None) -> Frame:
        """Return the first frame of a connection.

        Args:
            kind: ``"check"``, ``"serve"``, ``"fetch"`` or ``"simulator"``.
            manifest: The run.
            data: Further values.
        """
        queue = self.queue
        name, settings = (queue.name, queue.settings) if queue else (LocalLauncher.name, {})
        there = dataclasses.replace(manifest, launcher=name, launcher_settings=settings)
        env = {name: os.environ[name] for name in RUN_VARIABLES if name in os.environ} | self.env
        return Frame(kind=kind, data={"root": self.root, "manifest": to_json(there), "env": env, **(data or {})})

    def fetch(self, run_dir: Path, names: Sequence[str]) -> None:
        """Copy files of a run here. A copy that was interrupted goes on where it ended.

        Args:
            run_dir: Folder of the run here.
            names: Paths of the files below the folder of the run.

        Raises:
            RlnbError: The other machine cannot be reached, or has no such file.
            RunError: The run belongs to another user.
        """
        refuse_theirs(RunDir(run_dir))
        manifest = RunRecord(run_dir).manifest
        for name in names:
            wish = dataclasses.replace(self.wish("fetch", manifest), path=name)
            with Connection(self.argv()) as connection:
                try:
                    copy(connection.channel, RunDir(run_dir), wish)
                except Closed as exc:
                    what = self.reason(connection.code, connection.reason(exc))
                    raise RlnbError(f"{name} could not be copied: {what} Call it again: the copy goes on.") from exc
                except OSError as exc:
                    fix = "Free space, and call it again: the copy goes on."
                    raise RlnbError(f"{name} could not be written below {run_dir}: {exc}. {fix}") from exc

    def _differences(self, answer: Frame) -> Sequence[Problem]:
        """Return a problem for each package of rlnb with another version there. A plugin may be needed only here."""
        versions_there = answer.data.get("versions")
        theirs = versions_there if isinstance(versions_there, Mapping) else {}
        fix = f"Install the same versions there, into {answer.data.get('python')}."
        return [
            Problem(what=f"{self.place} has {name} {theirs[name]}, and this machine has {ours}.", fix=fix)
            for name, ours in versions().items()
            if theirs.get(name) not in (ours, None)
        ]

    def _collect(self) -> None:
        """Collect the exit statuses of mirrors that have ended, since each of them stays a process until then."""
        for path, (begun_s, mirror) in [*self._started.items()]:
            if mirror.poll() == 0 and time.monotonic() - begun_s > START_S:
                self._started.pop(path, None)

    def _start_mirror(self, job_dir: Path) -> None:
        """Start a process that mirrors the run of a job. It ends at once if there is one."""
        self._collect()
        log = job_dir / remote.LOG
        with entries.open_to_add(log) as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlnb.mirror.host", str(job_dir)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._started[run_dir_of(job_dir).path] = time.monotonic(), process


def refuse_theirs(run: RunDir) -> None:
    """Refuse to reach the other machine of another user's run, since its records name the command that reaches it.

    Raises:
        RunError: The run belongs to another user.
    """
    if (owner := foreign_owner(RunRecord(run.path))) is not None:
        what = f"{run.path.name} belongs to the user {owner}, who alone reaches its machine."
        raise RunError(f"{what} Ask that user, or train a run of your own.")


def is_mirrored(job: JobDir) -> bool:
    """Return whether a process mirrors the run of a job, or has just been started, on this machine or another one."""
    return age_s(job.host_alive if files.there(job.host_alive) else job.command) < SILENT_AFTER_S


def _explain(job: JobDir) -> None:
    """Record why the process that mirrors a run crashes again and again, as the reason why a job of the run waits."""
    last = files.tail(job.path / remote.LOG, 1)
    with contextlib.suppress(OSError):
        entries.touch(job.host_alive)  # the record counts as long as it is written
    WaitsWriter(job).write(f"the mirror of the run has ended {MOST_CRASHES} times: {last}")


def is_locked(run: RunDir) -> bool:
    """Return whether a process mirrors a run."""
    try:
        with files.open_regular(remote.lock_of(run)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
