"""A run as its folder tells it: state is derived from files, never stored."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.records import files
from rlnb.records.checkpoints import Checkpoints
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.records.metrics import Metrics, Span, SystemMetrics
from rlnb.spec import Library, Manifest, Result, Started, State, from_json

LOST_AFTER_S = 5.0
"""Seconds without a heartbeat after which a job whose process is gone counts as lost."""
SILENT_AFTER_S = 60.0
"""The same where the launcher cannot tell whether the process lives (another host)."""
_FIRST_SCALAR_BYTES = 200
"""An event file with a first scalar is larger than this; one with only its version record is not."""


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
        if self._result is None and (data := files.read_json(self.folder.result)):
            self._result = from_json(Result, data)  # written once, so read once
        return self._result

    @property
    def started(self) -> Started | None:
        if self._started is None and (data := files.read_json(self.folder.started)):
            self._started = from_json(Started, data)
        return self._started

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of what was asked of it."""
        return dict((files.read_json(self.folder.job) or {}).get("options", {}))

    @property
    def handle(self) -> dict[str, Any] | None:
        return files.read_json(self.folder.handle)

    @property
    def noted(self) -> dict[str, Any]:
        """What its launcher noted of it, such as the queue's number of it."""
        return files.read_json(self.folder.submitted) or {}

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
        begun = next((path for path in (self.folder.started, self.folder.running()) if path.exists()), None)
        if begun is None:
            return "queued"
        return "running" if self._has_metrics(begun) else "starting"

    def goes_on(self) -> bool:
        """Return whether the cluster interrupted it and who may go on with it, as a further job, is still there."""
        result, handle = self.result, self.handle
        interrupted = result is not None and result.values.get("interrupted") and not self.folder.cancel.exists()
        return bool(interrupted and handle and self._alive(handle))

    def _alive(self, handle: dict[str, Any]) -> bool | None:
        launcher = plugins.launchers().get(self._launcher)
        if launcher is None:  # its plugin is not installed here
            return None
        try:
            found: bool | None = plugins.load(launcher.factory)().alive(handle, self.folder.path)
        except (KeyError, TypeError):  # somebody else wrote the handle
            return None
        return found

    def _gone(self) -> bool:
        handle = self.handle
        if handle is None:  # between command.json and handle.json the kernel may have died
            return files.age_s(self.folder.command) > SILENT_AFTER_S and self._silence_s() > SILENT_AFTER_S
        alive = self._alive(handle)
        if alive is None:
            return self._silence_s() > SILENT_AFTER_S
        # The grace lets an agent that has just ended be seen after its result, never before.
        return not alive and self._silence_s() > LOST_AFTER_S and not self.folder.result.exists()

    def _silence_s(self) -> float:
        return min((files.age_s(beat) for beat in self.folder.beats()), default=files.age_s(self.folder.command))

    def _has_metrics(self, begun: Path) -> bool:
        if self.kind != "train":
            return begun == self.folder.started
        since = begun.stat().st_mtime - 1.0
        sizes = (path.stat() for path in run_dir_of(self.folder.path).event_files())
        return any(stat.st_size > _FIRST_SCALAR_BYTES and stat.st_mtime > since for stat in sizes)


class RunRecord:
    """A run that rlnb made: what was asked, what happened, where it stands. Reads only."""

    def __init__(self, path: Path) -> None:
        self.folder = RunDir(path.absolute())
        self._manifest: Manifest | None = None
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
        """What was asked."""
        if self._manifest is None:
            data = files.read_json(self.folder.manifest)
            if data is None:
                raise RlnbError(f"{self.folder.manifest} does not exist: {self.path} is not a run.")
            self._manifest = from_json(Manifest, data)
        return self._manifest

    @property
    def task(self) -> str:
        return self.manifest.task.id

    @property
    def library(self) -> str:
        return self.manifest.library

    @property
    def created(self) -> datetime:
        return datetime.fromisoformat(self.manifest.created)

    @property
    def jobs(self) -> list[JobRecord]:
        """Every job of the run, oldest first."""
        folders = self.folder.jobs()
        for folder in folders:
            if folder.path not in self._jobs:
                self._jobs[folder.path] = JobRecord(folder, self.manifest.launcher)
        return [self._jobs[folder.path] for folder in folders]

    @property
    def training(self) -> JobRecord | None:
        """The newest training job."""
        return next((job for job in reversed(self.jobs) if job.kind == "train"), None)

    @property
    def last_started(self) -> Started | None:
        """What the newest training says that has begun: one after it, which waits for its nodes, has no word yet."""
        told = (job.started for job in reversed(self.jobs) if job.kind == "train")
        return next((started for started in told if started is not None), None)

    @property
    def state(self) -> State:
        """Where the training stands; between two jobs that a cluster makes of it, it waits for the second."""
        job = self.training
        state = job.state() if job else "created"
        return "queued" if job and state in ("timeout", "failed") and job.goes_on() else state

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
        """What the run takes of its nodes, live."""
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
        from rlnb.spec import Task

        data = files.read_json(self.path / "run.json") or {}
        created = data.get("created_at") or datetime.fromtimestamp(self.path.stat().st_mtime, UTC).isoformat()
        return Manifest(
            run_id=self.path.name,
            created=created,
            task=Task(id=data.get("task", self.path.parent.name)),
            library=data.get("library", self.path.parent.parent.name),
            launcher="none",
        )

    @property
    def state(self) -> State:
        """Running while its event files grow; stock runs leave no word of their end."""
        newest = max((path.stat().st_mtime for path in self.path.rglob("*tfevents*")), default=0.0)
        return "running" if time.time() - newest < SILENT_AFTER_S else "completed"

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
    """Return the first ``key: <int>`` of a YAML file; 1 when there is none.

    Isaac Lab's dumps hold Python tags that safe YAML readers refuse, and one number is all we need.
    """
    try:
        match = re.search(rf"^\s*{key}: (\d+)$", path.read_text(), re.MULTILINE)
    except OSError:
        return 1
    return int(match.group(1)) if match else 1
