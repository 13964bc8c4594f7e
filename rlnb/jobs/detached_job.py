"""The job API of a detached launcher: command, agent argv, result, and continuation after an interruption."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb.contracts.launchers import Launcher
from rlnb.display.own_user import refuse_other_users
from rlnb.errors import RlnbError, RunError
from rlnb.hooks import plugins
from rlnb.jobs.jobs import NothingLeftError, ResumedError, refuse_without_resuming, start_job, submit, what_is_left
from rlnb.records import deadline
from rlnb.records.facts import RunFacts
from rlnb.records.incidents import (
    GIVEN_BACK,
    LAUNCH_FAILED,
    MOST_LAUNCH_FAILURES,
    WaitsWriter,
    interruptions,
    launch_failures,
)
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import JobRecord, QueueEntry, RunRecord
from rlnb.spec import Command, Job, Manifest, Outcome, Result
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json, to_json

NO_PROGRESS = (
    "No checkpoint was written before the end of the walltime, so a further job would get no further. Use a longer "
    "walltime, or save more often"
)


class DetachedJob:
    """A job, for the process that owns the cluster on which the job runs; see :class:`rlnb.launchers.DetachedLauncher`.

    Args:
        job_dir: Folder of the job.
    """

    def __init__(self, job_dir: Path) -> None:
        files.restrict_umask(Path(job_dir))  # of this process, the cluster's host
        refuse_other_users()
        self._folder = JobDir(Path(job_dir))
        self._record = RunRecord(run_dir_of(self._folder.path).path)
        self._waits = WaitsWriter(self._folder)

    @property
    def path(self) -> Path:
        """The job's folder, which must be on a file system that every node shares."""
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        """The manifest of the job's run."""
        return self._record.manifest

    @property
    def command(self) -> Command:
        """The command that the agents will run."""
        return from_json(Command, files.read_own_json(self._folder.command))

    @property
    def cancelled(self) -> bool:
        """Whether the job has been cancelled. Agents check this themselves."""
        return files.there(self._folder.cancel)

    @property
    def save_s(self) -> float:
        """Seconds that the cancellation gives the training to save a checkpoint; 0 without one, or if it is damaged."""
        try:
            return float((files.read_json(self._folder.cancel) or {}).get("save_s", 0.0))  # type: ignore[arg-type]
        except (RlnbError, TypeError, ValueError):
            return 0.0

    @property
    def result(self) -> Result | None:
        """The result of the job; None before it ends."""
        return JobRecord(self._folder, "").read_result()

    @property
    def hosts(self) -> Sequence[str]:
        """Hosts of the nodes whose agents have started, in node order."""
        return self._folder.hosts()

    def beat(self) -> None:
        """Write the host's heartbeat. Call this about once a second."""
        with contextlib.suppress(OSError):  # a transient error of the file system must not end the job
            entries.touch(self._folder.host_alive)

    def agent_argv(
        self,
        node: int = 0,
        *,
        python: str | None = None,
        master: str = "",
        hang_after_s: float | None = None,
        lifeline: bool = True,
    ) -> Sequence[str]:
        """Return the argv of a node's agent.

        Append ``--deadline=SECONDS`` (since the epoch) to make the agent end the job at that time, before the queue
        revokes the node.

        Args:
            node: Index of the node, from 0.
            python: Interpreter on that node; None is the current one.
            master: ``"host:port"``: the first node and a free port on it.
            hang_after_s: Seconds without a new scalar after which the job counts as hung; None means never.
            lifeline: Whether the agent exits when its standard input closes. If False, a signal means that the queue
                takes the node away.
        """
        end = "--lifeline" if lifeline else "--revocable"
        argv = [python or sys.executable, "-P", "-m", "rlnb.node", str(self.path), end, f"--node={node}"]
        more = {"master": master, "hang-after": hang_after_s}
        return [*argv, *(f"--{name}={value}" for name, value in more.items() if value)]

    @property
    def times_given_back(self) -> int:
        """Number of jobs of the run that gave their nodes back, because the other nodes did not come in time."""
        return sum(job.result is not None and bool(job.result.values.get(GIVEN_BACK)) for job in self._record.jobs)

    def end(
        self,
        outcome: Outcome,
        error: str,
        detail: str = "",
        *,
        interrupted: bool = False,
        given_back: bool = False,
        launch_failed: bool = False,
    ) -> None:
        """Write the result of the job, unless an agent or a rank has already written a more precise one.

        Args:
            outcome: Outcome of the job.
            error: The cause, in one line.
            detail: Further lines about the cause.
            interrupted: Whether the cluster ended the job, so that it may continue elsewhere.
            given_back: Whether the job gave its nodes back before it trained. It may continue as after an
                interruption, and does not count as one.
            launch_failed: Whether a node could not start the job, so that no rank has begun. The training is submitted
                once more, and this does not count as an interruption either.
        """
        reasons = {"interrupted": interrupted or given_back or launch_failed}
        reasons |= {GIVEN_BACK: given_back, LAUNCH_FAILED: launch_failed}
        values = {name: True for name, holds in reasons.items() if holds}
        result = Result(outcome=outcome, error=error, detail=detail, ended=files.now(), values=values)
        files.write_once(self._folder.result, result, self._folder.reserve)

    def note(self, *, queue: str, jobs: Sequence[str] = (), dashboard: int | None = None) -> None:
        """Record the job's entry in the queue, in place of an earlier one.

        Args:
            queue: Kind of the queue, e.g. ``"slurm"``.
            jobs: Ids that the queue gave the job.
            dashboard: Port of the cluster's dashboard on this machine.
        """
        files.replace_json(self._folder.submitted, QueueEntry(queue=queue, jobs=tuple(jobs), dashboard=dashboard))

    def waits(self, what: str) -> None:
        """Record why the job waits or stands still. ``run.wait()``, the tables and the panel show the reason.

        Call this whenever the reason is known. The record is written only if the reason has changed, and it counts only
        while the host writes its heartbeat.

        Args:
            what: The reason, in one line, such as ``"PENDING (Resources)"``; empty once the job no longer waits.
        """
        self._waits.write(what)

    @property
    def silence_s(self) -> float:
        """Seconds from the last heartbeat of the first node's agent to the host's; 0 before the agent has started."""
        with contextlib.suppress(OSError):  # both times are of the clock of the shared file system
            return self._folder.host_alive.stat().st_mtime - self._folder.alive().stat().st_mtime
        return 0.0

    def explain(self, cause: str) -> None:
        """Record the cause of an interruption, which replaces the less precise error of the result.

        Args:
            cause: The cause, in one line; an empty text changes nothing.
        """
        result = self.result
        if cause and result is not None and result.interrupted:
            with contextlib.suppress(OSError):  # a full disk; the result has an error of its own
                files.replace_json(self._folder.cause, {"error": cause})

    def end_by(self, time_s: float) -> None:
        """Tell the agents when to end the job, before the queue revokes its nodes.

        Args:
            time_s: The time, in seconds since the epoch, by this machine's clock. It replaces the ``--deadline`` of the
                agents, whose clocks may differ.
        """
        with contextlib.suppress(OSError):  # a full disk; the caller tells it again
            deadline.write(self._folder, time_s)

    def close(self) -> None:
        """Record that no further job continues this one, although its host lives on for the jobs of other runs."""
        files.write_once(self._folder.closed, {"time": files.now()})

    def go_on(self, most: int, launcher: Launcher | None = None, *, needs_progress: bool = True) -> bool:
        """Continue an interrupted training as a new job of its run; return whether a job was started.

        Args:
            most: Number of interruptions after which the training is not continued.
            launcher: Launcher that starts the new job; None is the run's own.
            needs_progress: Whether a training that has written no checkpoint before the end of its walltime is not
                continued. Pass False if it had to stop before that end.

        Raises:
            RlnbError: The run is a script's, which rlnb cannot resume, or the job cannot be started.
        """
        result = self.result
        if self._folder.kind != "train" or self.cancelled or result is None or not result.interrupted:
            return False
        jobs = [job for job in self._record.jobs if job.kind == "train"]
        if jobs[-1].folder.path != self.path:
            return False
        restart, most = _restart([job.result for job in jobs], most)
        if restart > most:
            if why := _no_more(result, restart, most):
                self.explain(". ".join(filter(None, [result.error, f"Not continued: {why}"])))
            return False
        if self.manifest.library == plugins.SCRIPT.name:
            raise RlnbError(f"{self._record.id} is the run of a script: rlnb cannot resume it. Start the script again.")
        try:
            options = rest_of(self._record, self._folder)
        except RunError as exc:  # the library cannot resume, or no checkpoint is sound
            self.explain(". ".join(filter(None, [result.error, f"Not continued: {exc}"])))
            return False
        if options is None:
            return False
        if needs_progress and result.outcome == "timeout" and not has_saved(self._record, self._folder):
            self.explain(". ".join(filter(None, [result.error, NO_PROGRESS])))
            return False
        try:
            start_job(
                self._record,
                "train",
                options,
                after=jobs[-1],
                restart=restart,
                max_restarts=most,
                launcher=launcher,
            )
        except ResumedError:  # by the user
            return False
        return True


def _restart(results: Sequence[Result | None], most: int) -> tuple[int, int]:
    """Return the number of the next restart of a run, and the number after which the run does not go on.

    Args:
        results: The results of its trainings, oldest first.
        most: Number of interruptions after which the run does not go on.
    """
    last = results[-1]
    if last is not None and last.values.get(LAUNCH_FAILED):
        return launch_failures(results), MOST_LAUNCH_FAILURES
    if last is not None and last.values.get(GIVEN_BACK):
        return 0, most
    return interruptions(results), most


def _no_more(result: Result, restart: int, most: int) -> str:
    """Return why a run is not restarted once more; an empty text if it was never to be."""
    if result.values.get(LAUNCH_FAILED):
        return f"no training of it could start, {restart} times in a row"
    return f"it was restarted {most} of {most} times (max_restarts)" if most else ""


# -- going on after an interruption ----------------------------------------------------------------------------------


def has_saved(record: RunRecord, job: JobDir) -> bool:
    """Return whether a run has a checkpoint that is newer than the start of a training."""
    since = job.command.stat().st_mtime
    return any(path.stat().st_mtime > since for path in record.checkpoints)


def rest_of(record: RunRecord, job: JobDir) -> TrainOptions | None:
    """Return the options of the training that goes on after an interrupted one; None if no iterations are left.

    Until the interrupted training has written a checkpoint, its own options (init_from or checkpoint) still apply.

    Raises:
        RunError: The training had begun, and its library cannot resume, or none of its checkpoints can be used.
    """
    if files.there(job.started):
        refuse_without_resuming(record)
    run = RunFacts(record.path)  # its state is "queued" here, so run.resume() would refuse
    options = options_of(TrainOptions, job)
    try:
        if has_saved(record, job):
            return what_is_left(run, trust=options.trust)
    except NothingLeftError:  # the interruption came at the very end
        return None
    return options


def next_job(job: JobDir, record: RunRecord, *, restart: int, max_restarts: int) -> JobDir | None:
    """Add the job that continues an interrupted training, and return its folder; None if no iterations are left.

    The owner of the run is not asked about: this process already runs the command of its records. If another process
    was first, its job is returned.

    Args:
        job: The interrupted training.
        record: Its run.
        restart: Number of the restart, from 1.
        max_restarts: Number of restarts after which the training is not continued.

    Raises:
        RlnbError: The job cannot be added, or the library cannot resume.
    """
    options = rest_of(record, job)
    if options is None:
        return None
    new = Job(kind="train", options=to_json(options), after=job.path.name, restart=restart, max_restarts=max_restarts)
    try:
        return submit(record.folder, record.manifest, new, plugins.launcher_of(record.manifest))
    except ResumedError:
        return job.sibling(job.successor_name())
