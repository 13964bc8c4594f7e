"""A job in the hands of its host: its command, its agents' argv, its end, and how it goes on after an interruption."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import RunRecord
from rlnb.records.submission import Submission
from rlnb.run.jobs import start_job
from rlnb.spec import Command, Manifest, Outcome, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json


class HostedJob:
    """A job as the process sees it that owns the cluster on which it runs; see :class:`rlnb.HostedLauncher`.

    Args:
        job_dir: Folder of the job.
    """

    def __init__(self, job_dir: Path) -> None:
        self._folder = JobDir(Path(job_dir))
        self._record = RunRecord(run_dir_of(self._folder.path).path)

    @property
    def path(self) -> Path:
        """Its folder, which every node has to see."""
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        """The manifest of its run."""
        return self._record.manifest

    @property
    def command(self) -> Command:
        """The command that the agents will run."""
        return from_json(Command, files.read_json(self._folder.command) or {})

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for it to end. Agents see that by themselves."""
        return files.there(self._folder.cancel)

    @property
    def result(self) -> Result | None:
        """The end of the job; None before."""
        record = files.read_json(self._folder.result) if files.there(self._folder.result) else None
        return from_json(Result, record) if record else None

    @property
    def hosts(self) -> Sequence[str]:
        """Host of every node whose agent has begun, in order."""
        return self._folder.hosts()

    def beat(self) -> None:
        """Say that the host is alive; once a second is often enough."""
        with contextlib.suppress(OSError):  # a file system that stumbles must not end the job
            self._folder.host_alive.touch()

    def agent_argv(
        self, node: int = 0, *, python: str | None = None, master: str = "", hang_after_s: float | None = None
    ) -> Sequence[str]:
        """Return what starts the agent of a node, which ends when its standard input does.

        With ``--deadline=SECONDS`` behind it, since the epoch, it ends then, before the queue takes the node away.

        Args:
            node: Which node, from 0.
            python: Interpreter of that node; None is this one.
            master: ``"host:port"``, a free port of the first node.
            hang_after_s: Seconds without a new scalar after which a rank is taken to hang; None never does.
        """
        argv = [python or sys.executable, "-m", "rlnb.node", str(self.path), "--lifeline", f"--node={node}"]
        more = {"master": master, "hang-after": hang_after_s}
        return [*argv, *(f"--{name}={value}" for name, value in more.items() if value)]

    def end(self, outcome: Outcome, error: str, detail: str = "", *, interrupted: bool = False) -> None:
        """Say how the job ended, unless an agent or a rank has, which knows more.

        Args:
            outcome: How.
            error: One line: why.
            detail: More of it.
            interrupted: Whether the cluster ended it, and not what it did: it may go on elsewhere.
        """
        values = {"interrupted": True} if interrupted else {}
        result = Result(outcome=outcome, error=error, detail=detail, ended=files.now(), values=values)
        files.write_once(self._folder.result, result, self._folder.reserve)

    def note(self, *, queue: str, jobs: Sequence[str] = (), dashboard: int | None = None) -> None:
        """Record the job's entry in the queue, once.

        Args:
            queue: Kind of the queue, e.g. ``"slurm"``.
            jobs: The queue's own ids of the job.
            dashboard: Port of the cluster's dashboard on this machine.
        """
        files.write_once(self._folder.submitted, Submission(queue=queue, jobs=tuple(jobs), dashboard=dashboard))

    def go_on(self, most: int) -> bool:
        """Start the training again where it was interrupted, as a further job; return whether that was done.

        Args:
            most: Interruptions after which it is left as it is.

        Raises:
            RlnbError: It is a script's, which alone knows how to go on; or it cannot be started.
        """
        result = self.result
        if self._folder.kind != "train" or self.cancelled or result is None or not result.interrupted:
            return False
        jobs = [job for job in self._record.jobs if job.kind == "train"]
        interrupted = [job for job in jobs if job.result is not None and job.result.interrupted]
        if jobs[-1].folder.path != self.path or len(interrupted) > most:
            return False
        if self.manifest.library == plugins.SCRIPT.name:
            raise RlnbError(f"{self._record.id} is a script's, and rlnb cannot resume it. Start the script again.")
        from rlnb.run.run import Run

        run = Run(self._record.path)  # its state waits for what is started here
        options = options_of(TrainOptions, jobs[-1].folder)
        try:
            # What it was asked holds until it has a checkpoint of its own: whose weights, or where a person chose.
            since = self._folder.command.stat().st_mtime
            if any(path.stat().st_mtime > since for path in run.checkpoints):
                options = run.what_is_left(trust=options.trust)
        except RlnbError:  # nothing is left to do: it was interrupted at its very end
            return False
        start_job(self._record, "train", options)
        return True
