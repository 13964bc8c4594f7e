"""A run as its folder tells it: state is derived from files, never stored."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.metrics.metrics import Metrics, Span, SystemMetrics
from rlnb.records.checkpoints import Checkpoints
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.records.submission import Submission
from rlnb.spec import Json, Library, Manifest, Result, Started, State
from rlnb.storage import files
from rlnb.storage.serial import from_json

LOST_AFTER_S = 5.0
"""Seconds without a heartbeat after which a job whose process is gone counts as lost."""
SILENT_AFTER_S = 60.0
"""The same where the launcher cannot tell whether the process lives (another host)."""
_FIRST_SCALAR_BYTES = 200
"""An event file with a first scalar is larger than this; one with only its version record is not."""
_MOST_COUNT = 1e15
"""Counts beyond this are garbage: what is computed from them would overflow."""

T = TypeVar("T")


def _read(cls: type[T], path: Path) -> T | None:
    """Return a record of a run, which a newer rlnb may have written; None when there is none.

    Raises:
        RlnbError: It cannot be read.
    """
    data = files.read_json(path, files.RECORD_BYTES)
    try:
        return None if data is None else from_json(cls, data, ignore_unknown=True)
    except RlnbError as exc:
        raise RlnbError(f"{path}: {exc}") from exc


class JobRecord:
    """One job of a run."""

    def __init__(self, folder: JobDir, launcher: str) -> None:
        self.folder = folder
        self._launcher = launcher
        self._result: Result | None = None
        self._started: Started | None = None

    @property
    def kind(self) -> str:
        return self.folder.kind

    @property
    def result(self) -> Result | None:
        if self._result is None:
            self._result = _read(Result, self.folder.result)  # written once, so read once
        return self._result

    @property
    def started(self) -> Started | None:
        """The record of the start; None before it, and where it cannot be read, which is logged once."""
        try:
            return self.read_started()
        except RlnbError as exc:
            files.warn_once(str(exc))
            return None

    def read_started(self) -> Started | None:
        """Return the record of the start; None before it.

        Raises:
            RlnbError: It cannot be read, or its counts are none.
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
        """Options of the job as its record has them; see :func:`rlnb.records.options.options_of`."""
        options = (files.read_json(self.folder.job) or {}).get("options")
        return options if isinstance(options, Mapping) else {}

    @property
    def handle(self) -> Mapping[str, Json] | None:
        """The keys by which the job's launcher finds it again; None before the job was started."""
        return files.read_json(self.folder.handle, files.RECORD_BYTES)

    @property
    def submission(self) -> Submission:
        """The job's entry in the queue of its cluster; empty where there is no such queue."""
        return _read(Submission, self.folder.submitted) or Submission()

    @property
    def never_began(self) -> bool:
        """Whether its kernel died before the command was written, as it could in version 0.1.0."""
        try:
            has_records = self.folder.command.exists() or self.folder.result.exists()
        except OSError:  # a folder of another user
            return False
        return not has_records and files.age_s(self.folder.path) > SILENT_AFTER_S

    def state(self) -> State:
        """Return where the job stands, from the files it has and whether its process lives."""
        try:
            result = self.result
        except RlnbError:
            return "lost"  # the only record of the end is unreadable
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

    def goes_on(self) -> bool:
        """Return whether the cluster interrupted it and who may go on with it, as a further job, is still there."""
        result = self.result
        interrupted = result is not None and result.interrupted and not self.folder.cancel.exists()
        return bool(interrupted and self._alive())

    def _alive(self) -> bool | None:
        """Return whether its process lives; None without a handle, and where its launcher cannot tell."""
        launcher = plugins.launchers().get(self._launcher)
        try:
            handle = self.handle
            if launcher is None or handle is None:  # its plugin is not installed here
                return None
            alive: bool | None = plugins.load(launcher.factory)().alive(handle, self.folder.path)
        except Exception as exc:  # somebody else wrote the handle
            files.warn_once(f"{self.folder.handle} does not tell whether the job runs: {exc!r}. Move it away.")
            return None
        return alive

    def _gone(self) -> bool:
        alive = self._alive()
        if alive is None:  # also between command.json and handle.json, where the kernel may have died
            return files.age_s(self.folder.command) > SILENT_AFTER_S and self._silence_s() > SILENT_AFTER_S
        # The grace lets an agent that has just ended be seen after its result, never before.
        return not alive and self._silence_s() > LOST_AFTER_S and not self.folder.result.exists()

    def _silence_s(self) -> float:
        return min((files.age_s(beat) for beat in self.folder.beats()), default=files.age_s(self.folder.command))

    def _has_metrics(self, mark: Path) -> bool:
        """Return whether the job has logged a scalar since it wrote a mark, the file that says that it began."""
        if self.kind != "train":
            return mark == self.folder.started
        since = mark.stat().st_mtime - 1.0
        for path in run_dir_of(self.folder.path).event_files():
            with contextlib.suppress(OSError):  # a link that leads nowhere
                stat = path.stat()
                if stat.st_size > _FIRST_SCALAR_BYTES and stat.st_mtime > since:
                    return True
        return False


class RunRecord:
    """A run that rlnb made: what was asked, what happened, where it stands. Reads only."""

    def __init__(self, path: Path, manifest: Manifest | None = None) -> None:
        self.folder = RunDir(path.absolute())
        self._manifest = manifest
        self._metrics: Metrics | None = None
        self._system: SystemMetrics | None = None
        self._jobs: dict[Path, JobRecord] = {}

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
            self._manifest = _read(Manifest, self.folder.manifest)
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
            when.astimezone()  # as lists show it: no earlier than the year 1
        except (ValueError, OverflowError) as exc:
            raise RlnbError(
                f"{self.path}: created={text!r} in its manifest is not an ISO 8601 time. Correct it."
            ) from exc
        return when if when.tzinfo else when.replace(tzinfo=UTC)

    @property
    def jobs(self) -> list[JobRecord]:
        """Every job of the run, oldest first; none where they cannot be read, which is logged once."""
        try:
            folders = self.folder.jobs()
        except OSError as exc:
            files.warn_once(f"{self.folder.jobs_folder} cannot be read: {exc.strerror or exc}. Make it readable.")
            return []
        for folder in folders:
            if folder.path not in self._jobs:
                self._jobs[folder.path] = JobRecord(folder, self.manifest.launcher)
        return [self._jobs[folder.path] for folder in folders]

    @property
    def training(self) -> JobRecord | None:
        """The newest training job that was given a command."""
        return next((job for job in reversed(self.jobs) if job.kind == "train" and not job.never_began), None)

    @property
    def last_started(self) -> Started | None:
        """The record of the newest training that has begun: a later one may still wait for its nodes."""
        records = (job.read_started() for job in reversed(self.jobs) if job.kind == "train")
        return next((started for started in records if started is not None), None)

    @property
    def state(self) -> State:
        """Where the training stands; between two jobs that a cluster makes of it, it waits for the second."""
        job = self.training
        if job is None:
            return "lost" if files.age_s(self.folder.manifest) > SILENT_AFTER_S else "created"
        state = job.state()
        return "queued" if state in ("timeout", "failed") and job.goes_on() else state

    @property
    def library_spec(self) -> Library | None:
        """The library's description; None when its plugin is not installed here."""
        return plugins.libraries().get(self.library)

    @property
    def metrics(self) -> Metrics:
        """Live metrics by name; every access reads what is new."""
        if self._metrics is None:
            self._metrics = Metrics(self.folder.logs, self.library_spec)
        self._metrics.count_by(self._spans())
        return self._metrics

    @property
    def system(self) -> SystemMetrics:
        """The load of the run on its nodes, live."""
        if self._system is None:
            self._system = SystemMetrics(self.folder.system, lambda: self.metrics)
        return self._system

    def _spans(self) -> list[Span]:
        spans = []
        for job in self.jobs:
            started = job.started if job.kind == "train" else None
            if started is not None:
                frames_per_step = started.frames_per_step or 1.0  # of an older rlnb: 0 is refused where it is written
                per_iteration = started.horizon * started.num_envs / frames_per_step
                spans.append(
                    Span(
                        start_time=started.time_s,
                        frames_per_step=frames_per_step,
                        steps_per_iteration=per_iteration,
                        logged_at_end=self.library_spec is not None and self.library_spec.logged_at_end,
                    )
                )
        return spans

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, oldest iteration first."""
        library = self.library_spec or plugins.SCRIPT
        return Checkpoints(self.folder.checkpoints(library.checkpoint_glob, library.checkpoint_pattern), self)

    def __repr__(self) -> str:
        return f"Run({self.id!r}, task={self.task!r}, library={self.library!r}, {self.state})"


class StockRecord(RunRecord):
    """A folder that stock ``isaaclab train`` wrote: ``logs/<library>/<experiment>/<time>``."""

    @property
    def manifest(self) -> Manifest:
        data = files.read_json(self.path / "run.json", files.RECORD_BYTES) or {}
        created = data.get("created_at") or datetime.fromtimestamp(self.path.stat().st_mtime, UTC).isoformat()
        manifest = {
            "run_id": self.path.name,
            "created": created,
            "task": {"id": data.get("task", self.path.parent.name)},
            "library": data.get("library", self.path.parent.parent.name),
            "launcher": "none",
        }
        return from_json(Manifest, manifest)

    @property
    def state(self) -> State:
        """Running while its event files grow; stock runs leave no word of their end."""
        newest_s = min((files.age_s(path) for path in self.path.rglob("*tfevents*")), default=float("inf"))
        return "running" if newest_s < SILENT_AFTER_S else "completed"

    @property
    def metrics(self) -> Metrics:
        if self._metrics is None:
            self._metrics = Metrics(self.path, self.library_spec, self._spans())
        return self._metrics

    def _spans(self) -> list[Span]:
        return self.spans(self.library_spec or plugins.SCRIPT)

    def spans(self, library: Library, world_size: int = 1) -> list[Span]:
        """Return how a library counts, from the configs dumped here; ``num_envs`` in them is that of one rank."""
        num_envs = _yaml_int(self.path / "params" / "env.yaml", "num_envs") * world_size
        horizon = _yaml_int(self.path / "params" / "agent.yaml", library.horizon_key)
        frames, steps = {
            "iteration": (num_envs * horizon, 1),
            "timestep": (num_envs, horizon),
            "frame": (1, num_envs * horizon),
        }[library.step_unit]
        return [
            Span(
                start_time=0.0,
                frames_per_step=float(frames),
                steps_per_iteration=float(steps),
                logged_at_end=library.logged_at_end,
            )
        ]

    @property
    def checkpoints(self) -> Checkpoints:
        pattern = (self.library_spec or plugins.SCRIPT).checkpoint_pattern
        matches = ((re.search(pattern, path.name), path) for path in self.path.glob("**/*.pt*"))
        return Checkpoints(
            [path for _, path in sorted((int(match.group(1)), path) for match, path in matches if match)], self
        )


def _yaml_int(path: Path, key: str) -> int:
    """Return the first ``key: <int>`` of a YAML file; 1 when there is none above 0.

    Isaac Lab's dumps hold Python tags that safe YAML readers refuse, and one number is all we need.
    """
    try:
        with files.open_regular(path) as file:
            text = file.read(files.RECORD_BYTES).decode("utf-8", "replace")
    except (OSError, RlnbError):
        return 1
    match = re.search(rf"^\s*{key}: (\d{{1,15}})$", text, re.MULTILINE)
    return (int(match.group(1)) if match else 1) or 1
