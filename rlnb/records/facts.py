"""Everything that can be read from the folder of a run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rlnb.errors import RlnbError, RunError, unknown, whole_number
from rlnb.records.arguments import arguments_of, modules, resolved_configs
from rlnb.records.find import find, find_one, open_record
from rlnb.records.incidents import alerts_of, read_shortages, refusals_of
from rlnb.records.layout import FILM
from rlnb.records.notes import Notes, Tags, name_of, rename
from rlnb.records.progress import Progress, progress_of, remaining_s
from rlnb.records.record import JobRecord, RunRecord
from rlnb.records.stock_record import ScriptRecord, StockRecord, fix_of
from rlnb.records.summary import RunSummary, summary_of
from rlnb.records.task_copy import trained_task
from rlnb.settings import options
from rlnb.spec import ENDED, Command, State
from rlnb.storage import entries, files
from rlnb.storage.files import whole

if TYPE_CHECKING:
    from datetime import datetime

    from rlnb.metrics.metrics import Metrics
    from rlnb.records.checkpoints import Checkpoints
    from rlnb.records.evaluation import Evaluation
    from rlnb.records.flight import Flight
    from rlnb.records.incidents import Alert, Restart, Shortage, Waits
    from rlnb.records.lineage import Lineage
    from rlnb.records.video import Video
    from rlnb.spec import Json, Manifest, Result, Started, Task

MOST_LOG_BYTES = 1 << 26
"""Most bytes of a log that are read."""


def checkpoint_of(record: RunRecord, name: str | Path | None, *, to_resume: bool = False) -> str:
    """Return the path of a checkpoint of a run: relative to the run's folder if inside it, else absolute.

    Args:
        record: The run.
        name: Name or path of the checkpoint; None is the last.
        to_resume: Whether its companions have to be finite too.

    Raises:
        RunError: The run has no sound checkpoint, the named one is torn, or rlnb cannot load the run's checkpoints.
        NotFiniteError: The named one, or the newest of a run without a sound one, is not finite.
        NotFoundError: There is no such file.
    """
    if isinstance(record, StockRecord):
        raise RunError(fix_of(record, name))
    if isinstance(record, ScriptRecord):
        raise RunError(f"{record.id} is the run of a script: rlnb cannot load its checkpoints. Use the script.")
    checkpoints = record.checkpoints
    if name is None and not checkpoints:
        if record.state in ENDED:
            raise RunError(
                f"{record.id} ({record.state}) ended before its first checkpoint, so its weights are lost. "
                "Start the training again with rlnb.train(...). Its log: run.logs()"
            )
        raise RunError(f"{record.id} ({record.state}) has no checkpoint yet. Its log: run.logs()")
    if name is None:
        if (newest := checkpoints.last_sound(to_resume=to_resume)) is None:
            none = checkpoints.none_sound(to_resume=to_resume)
            what = f"{record.id} ({record.state}) {none} Start a new training: rlnb.train(...)"
            raise checkpoints.error_of(checkpoints.last or checkpoints[-1])(what)
        return str(newest.relative_to(record.path))
    if not isinstance(name, str | Path):
        raise RunError(f"checkpoint={name!r} is not a name or a path. Use one of run.checkpoints.")
    path = next((path for path in checkpoints if path.name == str(name) or path == Path(name)), Path(name))
    if path in checkpoints.remote:
        return str(path.relative_to(record.path))
    if not checkpoints.exists(path):
        raise unknown("checkpoint", str(name), [path.name for path in checkpoints], has=record.id)
    if fault := checkpoints.fault(path, to_resume=to_resume):
        raise checkpoints.error_of(path)(f"{path} {fault}. {checkpoints.other_fix(path, to_resume=to_resume)}")
    return str(path.relative_to(record.path)) if path.is_relative_to(record.path) else str(path.absolute())


class RunFacts:
    """Everything that can be read from the folder of a run.

    Safe to open in any number of processes: it writes nothing but notes, tags and the name.
    """

    def __init__(self, path: Path) -> None:
        self._record = open_record(path)

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        """Return the run that a record describes."""
        run = cls.__new__(cls)
        run._record = record
        return run

    def reread(self) -> Self:
        """Return the same run with empty caches, for use in another thread."""
        return self.of(next(find(self.path)))

    @property
    def record(self) -> RunRecord:
        """The reader of the run's folder."""
        return self._record

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def name(self) -> str:
        """The run's name, which :func:`rlnb.train` or an assignment has given it; empty without one."""
        return name_of(self._record.folder.notes, self.manifest.name)

    @name.setter
    def name(self, name: str) -> None:
        rename(self._record.folder.notes, name)

    @property
    def title(self) -> str:
        """The run's name, or its id without one."""
        return self.name or self.id

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._record.path

    @property
    def manifest(self) -> Manifest:
        """The run's task, library, resources and arguments, as given to :func:`rlnb.train`."""
        return self._record.manifest

    @property
    def task(self) -> str:
        return self._record.task

    @property
    def library(self) -> str:
        return self._record.library

    @property
    def created(self) -> datetime:
        return self._record.created

    @property
    def state(self) -> State:
        """State of the training, derived from the run's files."""
        return self._record.state

    @property
    def started(self) -> Started | None:
        """Devices, envs, versions and assets that the training actually uses; None before the first iteration."""
        job = self._record.training
        return job.started if job else None

    @property
    def reason(self) -> str:
        """Why the training waits, stands still, goes on or has ended, in one line; empty if there is no such reason.

        Examples are ``"PENDING (JobHeldAdmin)"``, ``"restart 2 of 3 after: node 1 (gpu07) is lost"``, ``"suspended"``,
        and the error of a training that failed.
        """
        return self._record.reason

    @property
    def waits_for(self) -> list[str]:
        """Ids of the runs that have to end before this one starts; empty if it does not wait, or if it cannot know."""
        record = self.waits
        return list(record.runs) if record else []

    @property
    def waits(self) -> Waits | None:
        """Why the training waits or stands still, and since when; None if it does not, or if the reason is unknown."""
        job = self._record.training
        return job.waits if job and self.state not in ENDED else None

    @property
    def restarts(self) -> list[Restart]:
        """The restarts of the training after interruptions by its cluster, oldest first, each with its cause."""
        return [restart for job in self.jobs if job.kind == "train" and (restart := job.restart)]

    @property
    def silent_logs(self) -> list[Path]:
        """Logs of starting workers that have printed only their thread stacks for two minutes."""
        job = self._record.training
        return job.folder.silent_logs() if job and self.state == "starting" else []

    @property
    def result(self) -> Result | None:
        """Outcome, error and last checkpoint of the training; None before it ends."""
        job = self._record.training
        return job.result if job else None

    @property
    def jobs(self) -> list[JobRecord]:
        """Trainings, evaluations and exports of this run, in their order."""
        return self._record.jobs

    @property
    def metrics(self) -> Metrics:
        """Live metrics by name; ``.frame()`` returns tidy data."""
        return self._record.metrics

    @property
    def system(self) -> Metrics:
        """The load of the run on its nodes, sampled every 5 s while it trains.

        ``system/node0/cpu_cores`` (cores kept busy by the run's processes), ``system/node0/waited_cores`` (cores that
        they waited for, where Linux counts it), ``system/node0/memory_gib`` (their resident memory), with several ranks
        ``system/node0/rank0_memory_gib`` (that of one rank's processes), and on nodes with NVIDIA GPUs
        ``system/node0/gpu0_percent`` and ``system/node0/gpu0_memory_gib`` (of the whole device, including processes of
        other runs).
        """
        return self._record.system

    @property
    def tags(self) -> Tags:
        """The run's tags, a mutable set with ``.add("baseline")`` and ``.remove("baseline")``."""
        return tags_of(self._record)

    @property
    def notes(self) -> Notes:
        """The notes on the run, oldest first; ``.add("reward hacks the door")`` adds one."""
        return Notes(self._record.folder.notes)

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, oldest iteration first, with ``.last`` and, for any metric, ``.best("reward")``."""
        return self._record.checkpoints

    @property
    def evaluations(self) -> list[Evaluation]:
        """Every evaluation of this run, oldest first. One with a damaged record says so (``problem``)."""
        from rlnb.records.evaluation import evaluations_of

        return evaluations_of(job.folder for job in self.jobs if job.kind == "evaluate")

    @property
    def shortages(self) -> tuple[Shortage, ...]:
        """Limits of the physics solver that envs of the newest training have exceeded, so that contacts were lost."""
        job = self._record.training
        return read_shortages(sorted(entries.matching(job.folder.path, "shortages*.json"))) if job else ()

    @property
    def flight(self) -> Flight | None:
        """The first value of the newest training that was not finite, and the values of the steps before it.

        If all values were finite, these are the steps before its newest alert; None if there was no alert either. Of
        several ranks with such a value, the rank counts that ended the training.
        """
        from rlnb.records.flight import ALERT, read

        job = self._record.training
        folders = sorted(entries.matching(job.folder.path, "*flight[0-9]*")) if job else ()
        found = [record for record in map(read, folders) if record is not None]
        return min(found, key=lambda record: (record.kind == ALERT, not record.fatal, record.step), default=None)

    @property
    def alerts(self) -> list[Alert]:
        """The alerts of all trainings of this run, oldest first."""
        return alerts_of(job.folder for job in self.jobs if job.kind == "train")

    @property
    def films(self) -> Mapping[int, Video]:
        """The films that were made during the training (``film_every=``), by learning iteration.

        A film of iterations that the run has trained again since is left out.
        """
        from rlnb.records.video import Video

        paths = entries.matching(self._record.folder.media, f"{FILM}*.mp4")
        named = ((path.stem.removeprefix(FILM), path) for path in paths)
        films = dict(sorted((int(number), path) for number, path in named if number.isdigit()))
        trainings = [(job.folder, started) for job in self.jobs if job.kind == "train" and (started := job.started)]
        for folder, started in trainings[1:]:
            with contextlib.suppress(OSError):  # a run that is being deleted
                began_s, first = folder.started.stat().st_mtime, started.first_iteration
                films = {n: path for n, path in films.items() if n < first or path.stat().st_mtime >= began_s}
        return {number: Video(path) for number, path in films.items()}

    @property
    def progress(self) -> Progress:
        """Number of finished iterations and of all iterations, which is 0 as long as it is unknown.

        While a resumed training starts, these are the numbers that its run had before.
        """
        return progress_of(self._record, self.metrics)

    def summary(self, *, metrics: bool = True) -> RunSummary:
        """Return what every list of runs shows: state, reason, progress, time left, last values.

        Args:
            metrics: Whether to read the event files, which takes a while if they are long.
        """
        return summary_of(self._record, metrics=metrics)

    @property
    def arguments(self) -> Mapping[str, Json]:
        """The arguments that the run was given, by the names that tables, curves and :meth:`rlnb.Runs.diff` use.

        Those left at their default are missing. Values of the task's and of the agent's config have their dotted path:
        ``"sim.dt"``, ``"agent.algorithm.learning_rate"``.
        """
        return arguments_of(self.manifest)

    @property
    def config(self) -> Mapping[str, Json]:
        """The arguments of the run and, once dumped, the resolved configs of env and agent, by dotted path."""
        return {**arguments_of(self.manifest), **modules(self.started), **resolved_configs(self._record.folder)}

    def lineage(self, among: Iterable[RunFacts] | None = None) -> Lineage:
        """Return the runs that this run comes from, and those that come from it, as a small tree.

        A run comes from the run that it repeats (``like=``), whose weights it starts from (``init_from=``), or whose
        policy or data it takes (``inputs=``). Its manifest names them, also if their folders are gone.

        Args:
            among: Runs among which to look for those that come from it; None is all runs of the same folder.
        """
        from rlnb.records.lineage import lineage_of

        return lineage_of(self._record, None if among is None else [run.record for run in among])

    @property
    def eta_s(self) -> float | None:
        """Remaining seconds of the training at its average pace so far; None if that is unknown."""
        return remaining_s(self._record, self.state, self.progress)

    @property
    def command(self) -> str:
        """The shell command that the newest training job ran."""
        from rlnb.storage.serial import from_json

        job = self._record.training
        data = files.read_json(job.folder.command, files.RECORD_BYTES) if job else None
        return from_json(Command, data).shell() if data else ""

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why pods of a run do not start, for a run that waits for them; see :func:`rlnb.injected`."""
        job = self._record.training
        if job is None or self.state not in ("queued", "starting"):
            return ()
        return tuple(map(str, refusals_of(job.folder)))

    def trained_task(self, *, trust: bool = False) -> Task:
        """Return the task as it was trained, with the copy of its module in the run's folder; see :func:`rlnb.task`."""
        return trained_task(self._record, trust=trust)

    def logs(self, lines: int = 40, *, job: int | None = None) -> str:
        """Return the end of a job's log, of which the last 64 MiB at most are read.

        Args:
            lines: Number of lines, from the end of the log.
            job: Number of the job; None is the newest job with a log. Jobs in the warm simulator have no log.
        """
        if problems := whole_number("lines", lines := whole(lines)):
            raise RlnbError(f"{problems[0].what} Use lines=40.")
        jobs = self.jobs
        if not jobs:
            return LogText()
        newest = next((j for j in reversed(jobs) if j.folder.logs()), jobs[-1])
        number = whole(job)
        record = newest if job is None else next((j for j in jobs if j.folder.number == number), None)
        if record is None:
            raise unknown("job", str(job), [j.folder.path.name for j in jobs], has=f"Jobs of {self.id}")
        texts = (files.tail(path, lines, MOST_LOG_BYTES, told=True) for path in record.folder.logs())
        return LogText("\n".join(texts))


class LogText(str):
    """The text of a log, which a cell shows as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def find_run(id: str) -> RunFacts:
    """Return a run of the root by its id, by a unique part of its id, or by its folder.

    Raises:
        NotFoundError: No run matches, or several do.
    """
    return RunFacts.of(find_one(options.folders, id))


def tags_of(record: RunRecord) -> Tags:
    """Return a run's tags."""
    return Tags(record.folder.notes, record.manifest.tags)


# -- differences -----------------------------------------------------------------------------------------------------


_OF_A_CELL = re.compile(r"\b(rlnb_task_\w+)_[0-9a-f]{12}\b")
"""Name of a cell's module, as :func:`rlnb.worker.isaac.modules.import_file` makes it."""


def differences(runs: Collection[RunFacts]) -> dict[str, dict[str, Json]]:
    """Return the value of each run, by its id, for every argument and resolved config value that differs.

    Two kinds of values are left out, because they say nothing: texts that differ only in the folder or the id of their
    run, and config values that repeat an argument in all runs, such as ``env.seed``. The name of a cell's module has a
    hash of its source, which is left out too, since ``source`` has it: functions of the same name count as equal. A run
    that waits in a queue has no resolved config yet, so only its arguments are compared. A module of a package is
    compared between the runs that have imported it, because a warm simulator has also those of its earlier runs.

    Args:
        runs: Runs with different ids.

    Returns:
        Values by id, by name; an empty text for a run that lacks the name.
    """
    configs = {run.id: run.config for run in runs}
    names = dict.fromkeys(name for config in configs.values() for name in config)
    rows = {name: {id: _unhashed(config.get(name, "")) for id, config in configs.items()} for name in names}
    arguments = {name for run in runs for name in arguments_of(run.manifest)}
    plain = {run.id: (str(run.path), run.id) for run in runs}
    return {
        name: row
        for name, row in rows.items()
        if len({_text(value, plain[id]) for id, value in row.items() if _compares(name, configs[id], arguments)}) > 1
        and not _repeats(name, rows, arguments)
    }


def _compares(name: str, config: Mapping[str, Json], arguments: Collection[str]) -> bool:
    """Return whether a run's value of a name, or the lack of one, says anything."""
    if name in arguments:
        return True
    return name in config if name.startswith("source.") else bool(config.keys() - arguments)


def _unhashed(value: Json) -> Json:
    """Return a value without the hashes in the names of cells' modules."""
    if isinstance(value, str):
        return _OF_A_CELL.sub(r"\1", value)
    return [_unhashed(item) for item in value] if isinstance(value, list) else value


def _text(value: Json, names: tuple[str, str]) -> str:
    """Return a value as text without its run's folder and id."""
    text = repr(value)
    for name in names:
        text = text.replace(name, "")
    return text


def _repeats(name: str, rows: Mapping[str, Mapping[str, Json]], arguments: Collection[str]) -> bool:
    """Return whether a config value equals an argument of the same name in all runs."""
    return name not in arguments and any(
        name.endswith(f".{argument}") and rows[name] == rows[argument] for argument in arguments
    )
