"""A run, read from its folder: its state is derived from files, never stored."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.plugin import INTERRUPTS
from rlnb.metrics.metrics import LastPoint, LastValues, Metrics, NewestValues, SystemMetrics
from rlnb.metrics.series import Span, ends_of
from rlnb.records import incidents, last_points
from rlnb.records.checkpoints import Checkpoints, checkpoints_of
from rlnb.records.incidents import Restart, Waits, refusals_of
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.records.options import logged_before
from rlnb.spec import ENDED, Job, Json, Manifest, Result, Started, State
from rlnb.storage import files
from rlnb.storage.cache import Kept, is_settled, stamp_of
from rlnb.storage.clock import SILENT_AFTER_S, age_s
from rlnb.storage.serial import from_json

LOST_AFTER_S = 5.0
"""Seconds without a heartbeat after which a job whose process is gone counts as lost."""
CLOCKS_APART_S = 3600.0
"""Largest difference between the clocks of two machines, where the file system's clock cannot be read."""
_FIRST_SCALAR_BYTES = 200
"""Largest size of an event file that holds only its version record and no scalar."""
_MOST_COUNT = 1e15
"""Largest credible count: with a greater one, later computations could overflow."""

T = TypeVar("T")

_manifests: Kept[Manifest] = Kept()


def _read(cls: type[T], path: Path) -> T | None:
    """Return a record of a run, ignoring fields of a newer rlnb; None if the file does not exist.

    Raises:
        RlnbError: The record cannot be read.
    """
    data = files.read_json(path, files.RECORD_BYTES)
    try:
        return None if data is None else from_json(cls, data, ignore_unknown=True)
    except RlnbError as exc:
        raise RlnbError(f"{path}: {exc}") from exc


def _manifest_in(path: Path) -> Manifest | None:
    """Return a manifest, which lists of runs ask for again and again; None if the file does not exist.

    Raises:
        RlnbError: The manifest cannot be read.
    """
    stamp = stamp_of(path)
    manifest = _manifests.get(path, stamp)
    if manifest is None and (manifest := _read(Manifest, path)) and is_settled([stamp]):
        _manifests.put(path, stamp, manifest)
    return manifest


class JobRecord:
    """One job of a run."""

    def __init__(self, folder: JobDir, launcher: str) -> None:
        self.folder = folder
        self._launcher = launcher
        self._result: Result | None = None
        self._started: Started | None = None
        self._counts = self._began = False

    @property
    def kind(self) -> str:
        return self.folder.kind

    @property
    def result(self) -> Result | None:
        """The job's ``result.json``; None before it is written, or if it is unreadable, which is logged once."""
        try:
            return self.read_result()
        except RlnbError as exc:
            files.warn_once(str(exc))
            return None

    def read_result(self) -> Result | None:
        """Return the job's ``result.json``; None before it is written.

        Raises:
            RlnbError: The record cannot be read.
        """
        if self._result is None:
            self._result = _read(Result, self.folder.result)  # written once, so read once
        if self._result is None or not self._result.interrupted:
            return self._result
        cause = (files.read_json(self.folder.cause, files.RECORD_BYTES) or {}).get("error")
        return dataclasses.replace(self._result, error=str(cause)) if cause else self._result

    @property
    def started(self) -> Started | None:
        """The job's ``started.json``; None before it is written, or if it is unreadable, which is logged once."""
        try:
            return self.read_started()
        except RlnbError as exc:
            files.warn_once(str(exc))
            return None

    def read_started(self) -> Started | None:
        """Return the job's ``started.json``; None before it is written.

        Raises:
            RlnbError: The record cannot be read, or its counts are not positive numbers.
        """
        if self._started is None and (started := _read(Started, self.folder.started)):
            counts = (started.horizon, started.num_envs, started.frames_per_step)
            if not (all(0 <= count <= _MOST_COUNT for count in counts) and started.horizon and started.num_envs):
                path, names = self.folder.started, "horizon, num_envs, frames_per_step"
                raise RlnbError(
                    f"{path}: {names}={counts} are not positive numbers. Correct them, or move the file away."
                )
            self._started = started
        return self._started

    @property
    def options(self) -> Mapping[str, Json]:
        """Options as stored in ``job.json``; see :func:`rlnb.records.options.options_of`."""
        options = (files.read_json(self.folder.job, files.RECORD_BYTES) or {}).get("options")
        return options if isinstance(options, Mapping) else {}

    def span(self, library: Library | None) -> Span | None:
        """Return how the training counts steps; None before its first iteration, and for other kinds of jobs.

        Args:
            library: Description of the run's library; None if its plugin is not installed here.
        """
        started = self.started if self.kind == "train" else None
        if started is None:
            return None
        frames_per_step = started.frames_per_step or 1.0  # older versions of rlnb could write 0
        return Span(
            start_time=started.time_s,
            frames_per_step=frames_per_step,
            steps_per_iteration=started.horizon * started.num_envs / frames_per_step,
            logged_at_end=library is not None and library.logged_at_end,
            logged=self.logged,
        )

    @functools.cached_property
    def logged(self) -> Mapping[str, int]:
        """Where the event files of earlier, lost trainings end; see :class:`rlnb.records.options.TrainOptions`."""
        return logged_before(self.folder)

    @property
    def counts(self) -> bool:
        """Whether the job belongs to the run; see :meth:`rlnb.records.layout.JobDir.counts`."""
        self._counts = self._counts or self.folder.counts()
        return self._counts

    @property
    def handle(self) -> Mapping[str, Json] | None:
        """Keys by which the launcher finds the job again; None before the job was started."""
        return files.read_json(self.folder.handle, files.RECORD_BYTES)

    @property
    def submission(self) -> QueueEntry:
        """The job's entry in the queue of its cluster; empty if the cluster has no queue."""
        return _read(QueueEntry, self.folder.submitted) or QueueEntry()

    @functools.cached_property
    def restart(self) -> Restart | None:
        """The restart after an interruption by which the job has come about; None for a job that a user started."""
        try:
            job = _read(Job, self.folder.job)
            if job is None or job.restart < 1:
                return None
        except RlnbError:  # a damaged record
            return None
        earlier = self.folder.sibling(job.after)
        result = JobRecord(earlier, self._launcher).result if earlier else None
        return Restart(number=job.restart, most=job.max_restarts, cause=result.error if result else "")

    @property
    def waits(self) -> Waits | None:
        """Why the job waits or stands still; None if it does not, or if the writer of the record is gone."""
        return None if files.there(self.folder.result) else incidents.read_waits(self.folder)

    @property
    def never_began(self) -> bool:
        """Whether the kernel died before it wrote the job's command, as was possible in version 0.1.0."""
        if self._began:
            return False
        try:
            self._began = self.folder.command.exists() or self.folder.result.exists()
        except OSError:  # a folder of another user
            return False
        return not self._began and age_s(self.folder.path) > SILENT_AFTER_S

    def state(self) -> State:
        """Return the state of the job, from its files and from whether its process lives."""
        try:
            result = self.read_result()
        except RlnbError:
            return "lost"  # result.json, the only record of the outcome, is unreadable
        if result is not None:
            return result.outcome
        if not self.folder.command.exists():
            return "created"
        if self._gone():
            return "cancelled" if self.folder.cancel.exists() else "lost"
        mark = next((path for path in (self.folder.started, self.folder.running()) if path.exists()), None)
        if mark is None:
            return "queued"
        return "running" if self._has_metrics(mark) else "starting"

    def may_wait(self) -> bool:
        """Return whether the job is lost, but its entry in the cluster's queue may still be there."""
        return bool(self.submission.jobs) and self.state() == "lost"

    def goes_on(self) -> bool:
        """Return whether the cluster interrupted this job, and the process that can continue it as a new job lives."""
        result = self.result
        ended = self.folder.cancel.exists() or self.folder.closed.exists()
        interrupted = result is not None and result.interrupted and not ended
        return bool(interrupted and self._alive())

    def _alive(self) -> bool | None:
        """Return whether the job's process lives; None without a handle, or if the launcher cannot tell."""
        launcher = plugins.launchers().get(self._launcher)
        try:
            handle = self.handle
            if launcher is None or handle is None:  # the launcher's plugin is not installed, or no handle yet
                return None
            alive: bool | None = plugins.load(launcher.factory)().alive(handle, self.folder.path)
        except INTERRUPTS:
            raise
        except BaseException as exc:  # a damaged or foreign handle can raise anything in the launcher
            files.warn_once(f"{self.folder.handle}: the launcher cannot tell if the job runs ({exc!r}). Move it away.")
            return None
        return alive

    def _gone(self) -> bool:
        alive = self._alive()
        if alive is None:  # includes a kernel that died between command.json and handle.json
            command_s = age_s(self.folder.command, doubt_s=CLOCKS_APART_S)
            return command_s > SILENT_AFTER_S and self._silence_s(doubt_s=CLOCKS_APART_S) > SILENT_AFTER_S
        # The delay gives result.json time to become visible, so that a job whose agent has just exited is not lost.
        return not alive and self._silence_s() > LOST_AFTER_S and not self.folder.result.exists()

    def _silence_s(self, doubt_s: float = 0.0) -> float:
        return min(age_s(path, doubt_s) for path in (self.folder.beats() or [self.folder.command]))

    def _has_metrics(self, mark: Path) -> bool:
        """Return whether the job has logged a scalar since ``mark``, the file that records its start, was written."""
        if self.kind != "train":
            return mark == self.folder.started
        since = mark.stat().st_mtime - 1.0
        for path in run_dir_of(self.folder.path).event_files():
            with contextlib.suppress(OSError):  # a dangling symbolic link
                stat = path.stat()
                if stat.st_size > _FIRST_SCALAR_BYTES and stat.st_mtime > since:
                    return True
        return False


class RunRecord:
    """Read-only record of a run that rlnb made: its arguments, its jobs and its state."""

    def __init__(self, path: Path, manifest: Manifest | None = None) -> None:
        self.folder = RunDir(path.absolute())
        self._manifest = manifest
        self._metrics: Metrics | None = None
        self._system: SystemMetrics | None = None
        self._jobs: dict[str, JobRecord] = {}
        self._listed: list[JobRecord] | None = None

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def manifest(self) -> Manifest:
        """The run's task, library, resources and arguments."""
        if self._manifest is None:
            self._manifest = _manifest_in(self.folder.manifest)
        if self._manifest is None:
            raise RlnbError(f"{self.folder.manifest} does not exist: {self.path} is not a run.")
        return self._manifest

    @property
    def task(self) -> str:
        return self.manifest.task.id

    @property
    def library(self) -> str:
        return self.manifest.library

    @property
    def created(self) -> datetime:
        text = self.manifest.created
        try:
            when = datetime.fromisoformat(text)
            when.astimezone()  # lists show local time, which must not lie before the year 1
        except (ValueError, OverflowError) as exc:
            raise RlnbError(
                f"{self.path}: created={text!r} in its manifest is not an ISO 8601 time. Correct it."
            ) from exc
        return when if when.tzinfo else when.replace(tzinfo=UTC)

    @contextlib.contextmanager
    def jobs_listed_once(self) -> Iterator[None]:
        """List the jobs only once inside: a row of a list asks for them again and again."""
        self._listed = self.jobs
        try:
            yield
        finally:
            self._listed = None

    @property
    def jobs(self) -> list[JobRecord]:
        """Every job of the run, oldest first; empty if their folder is unreadable, which is logged once.

        A job that lost against another process, which has resumed the run at the same moment, is not among them.
        """
        if self._listed is not None:
            return self._listed
        try:
            folders = self.folder.jobs()
        except OSError as exc:
            files.warn_once(f"{self.folder.jobs_folder} cannot be read: {exc.strerror or exc}. Make it readable.")
            return []
        for folder in folders:
            if folder.path.name not in self._jobs:
                self._jobs[folder.path.name] = JobRecord(folder, self.manifest.launcher)
        return [job for folder in folders if (job := self._jobs[folder.path.name]).counts]

    @property
    def training(self) -> JobRecord | None:
        """The newest training job, without those whose kernel died before writing a command."""
        return next((job for job in reversed(self.jobs) if job.kind == "train" and not job.never_began), None)

    @property
    def last_started(self) -> Started | None:
        """``started.json`` of the newest training job that has one; a later job may still wait for its nodes."""
        records = (job.read_started() for job in reversed(self.jobs) if job.kind == "train")
        return next((started for started in records if started is not None), None)

    @property
    def state(self) -> State:
        """State of the training; "queued" between a job that the cluster interrupted and the job that continues it."""
        job = self.training
        if job is None:
            return "lost" if age_s(self.folder.manifest) > SILENT_AFTER_S else "created"
        state = job.state()
        return "queued" if state in ("timeout", "failed") and job.goes_on() else state

    @property
    def reason(self) -> str:
        """Why the training waits, goes on or has ended, in one line; empty if there is nothing to explain."""
        return self.reason_of(self.state)

    def reason_of(self, state: State) -> str:
        """Return the reason for a state that was read a moment ago; see :attr:`reason`."""
        job = self.training
        if job is None or state == "completed":
            return ""
        if state == "lost":
            return "its process ended without a result"
        result = job.result
        if state in ENDED:
            return result.error if result and result.error != state else ""
        if result is not None:  # the host of an interrupted job is about to start the next one
            return f"the training goes on after: {result.error}" if result.interrupted else ""
        if state == "running":
            restart = refusal = ""
        else:
            restart, refusal = str(job.restart or ""), next(map(str, refusals_of(job.folder)), "")
        record = job.waits
        return "; ".join(filter(None, (restart, refusal, record.what if record else "")))

    @property
    def library_spec(self) -> Library | None:
        """The library's description; None if its plugin is not installed here."""
        return plugins.libraries().get(self.library)

    @property
    def metrics(self) -> Metrics:
        """Live metrics by name; every access reads the newly logged values."""
        if self._metrics is None:
            self._metrics = Metrics(self.folder.logs, self.library_spec)
        self._metrics.count_by(self._spans())
        return self._metrics

    def newest(self, state: State) -> NewestValues:
        """Return the names of the metrics and their newest values, for lists.

        Those of a training that has ended are read without its curves.

        Args:
            state: State of the run, as it was read a moment ago.
        """
        if state not in ENDED or self._metrics is not None:
            return self.metrics
        library, spans = self.library_spec, self._spans()
        return LastValues(self._last_points(spans), library, spans)

    def _last_points(self, spans: Sequence[Span]) -> Sequence[LastPoint]:
        job = self.training
        return last_points.points_of(self._logs, ends_of(spans), job.folder.last_points if job else None)

    def write_last_points(self, job: JobDir, limit_s: float) -> None:
        """Write down the newest values of a training that is about to end; see :mod:`rlnb.records.last_points`.

        Args:
            job: Folder of the training.
            limit_s: Seconds that it may take. If they do not suffice, nothing is written.
        """
        last_points.write(job.last_points, self._logs, ends_of(self._spans()), limit_s)

    @property
    def _logs(self) -> Path:
        """Folder of the event files."""
        return self.folder.logs

    @property
    def system(self) -> SystemMetrics:
        """The load of the run on its nodes, live."""
        if self._system is None:
            self._system = SystemMetrics(self.folder.system, lambda: self.metrics)
        return self._system

    def _spans(self) -> list[Span]:
        library = self.library_spec
        spans = (job.span(library) for job in self.jobs)
        return [span for span in spans if span is not None]

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, oldest iteration first, after those that the run has abandoned."""
        paths, elsewhere, abandoned = checkpoints_of(self.folder, self.library_spec or plugins.SCRIPT)
        return Checkpoints(paths, self, elsewhere, abandoned)

    def __repr__(self) -> str:
        state = self.state
        reason = f": {text}" if (text := self.reason_of(state)) else ""
        return f"Run({self.id!r}, task={self.task!r}, library={self.library!r}, {state}{reason})"


# -- the entry in a queue --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueEntry:
    """Entry of a job in its cluster's queue, as stored in ``submitted.json``."""

    queue: str = ""
    """Kind of the queue, e.g. ``"slurm"``."""
    jobs: tuple[str, ...] = ()
    """Ids that the queue gave the job."""
    dashboard: int | None = None
    """Port of the cluster's dashboard on the job's host; None if there is no dashboard."""
