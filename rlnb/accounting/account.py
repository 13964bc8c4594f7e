"""The account of one run: the parts of its wall time, its interruptions, and what it cost."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rlnb.errors import RlnbError
from rlnb.metrics.events import EventReader
from rlnb.metrics.series import Span, ends_of
from rlnb.node.peers import HANGS
from rlnb.records.checkpoints import Checkpoints, Save, saves_of
from rlnb.records.incidents import never_trained
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import JobRecord, RunRecord
from rlnb.spec import ENDED, SYSTEM, Manifest, Result, State
from rlnb.storage import entries, files
from rlnb.storage.clock import moment_s

if TYPE_CHECKING:
    import numpy as np

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Interruption:
    """The end of a training before its last iteration."""

    run: str
    """Id of the run."""
    job: str
    """Name of the job's folder, such as ``"0-train"``."""
    time_s: float
    """Time of the interruption, in seconds since the epoch. That of a process that was lost is its last heartbeat."""
    cause: Cause
    """The cause, in two words."""
    error: str
    """Error of the job, in one line; empty if the process was lost."""
    lost_iterations: int | None
    """Finished iterations that the run did not keep; None for a script, whose checkpoints rlnb cannot load."""
    lost_s: float
    """Seconds of training that the run did not keep."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """How one run used its time."""

    run: str
    """Id of the run."""
    path: Path
    """Folder of the run."""
    task: str
    """Name of its task."""
    state: State
    """State of its training."""
    parts: TimeParts
    """The parts of its wall time."""
    interruptions: tuple[Interruption, ...]
    """Its interruptions, oldest first."""
    held_s: float
    """Seconds in which its jobs had nodes."""
    node_hours: float
    """Hours of all nodes that its jobs held."""
    gpu_hours: float
    """Hours of all GPUs that its jobs held; 0 on CPUs, NaN if their number is unknown."""
    frames: float
    """Env transitions that the run kept, over all ranks; NaN for a script."""
    checkpoint_bytes: int
    """Bytes of the checkpoints that its trainings wrote, including those deleted since. Older versions of rlnb did not
    record them; of theirs, only those that are left count."""


@dataclass(kw_only=True, slots=True)
class _Timeline:
    """The moments of one training, in seconds since the epoch, in their order."""

    job: JobRecord
    state: State
    request_s: float
    node_s: float
    begin_s: float
    end_s: float
    span: Span | None
    first_iteration: int
    """Iteration at which the training begins, or will begin once it leaves the queue."""
    kept_s: float = math.nan
    """Time up to which the run kept the work of this training."""
    iterations: int = 0
    """Iterations that the run kept."""
    lost_iterations: int | None = 0
    saves: list[Save] | None = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        return self.state in ENDED and self.state != "completed" and not self._never_trained

    @property
    def _never_trained(self) -> bool:
        """Whether the job gave its nodes back, because others did not come in time, or a node could not start it."""
        result = self.job.result
        return result is not None and never_trained(result)


def account_of(record: RunRecord) -> Account | None:
    """Return the account of a run; None if it has no training, as those of stock Isaac Lab.

    Clocks of several machines may differ by seconds. No moment is earlier than the one before it, so that each second
    belongs to one part.

    Raises:
        RlnbError: The manifest or a record of a job cannot be read.
    """
    created_s = record.created.timestamp()
    logged = Iterations(record)
    timelines = _timelines(record, created_s, time.time(), logged)
    if not timelines:
        return None
    later: _Timeline | None = None
    for line in reversed(timelines):
        _weigh(line, later, record, logged)
        later = _earlier_begin(line, later)
    held = [line.end_s - line.node_s for line in timelines]
    node_hours = sum(held) / HOUR_S * record.manifest.resources.nodes
    return Account(
        run=record.id,
        path=record.path,
        task=record.task,
        state=record.state,
        parts=_parts(created_s, timelines),
        interruptions=tuple(_interruption(record.id, line) for line in timelines if line.interrupted),
        held_s=sum(held),
        node_hours=node_hours,
        gpu_hours=sum(held) / HOUR_S * _gpus(record.manifest, timelines),
        frames=_frames(timelines),
        checkpoint_bytes=_checkpoint_bytes(record, timelines),
    )


def _timelines(record: RunRecord, created_s: float, now_s: float, logged: Iterations) -> list[_Timeline]:
    lines: list[_Timeline] = []
    for job in record.jobs:
        if job.kind != "train" or job.never_began:
            continue
        state = job.state()
        request_s = max(_request_s(job, lines[-1].job), lines[-1].end_s) if lines else created_s
        span = job.span(record.library_spec)
        end_s = max(request_s, _end_s(job) if state in ENDED else now_s)
        if state == "lost" and span is not None:  # it may have logged after its last heartbeat
            end_s = max(end_s, logged.last_s(span))
        node_s = _within(request_s, _node_s(job), end_s)
        first_s = span.start_time if span else logged.first_s(node_s) if record.manifest.script else None
        begin_s = _within(node_s, first_s, end_s)
        started = job.started
        first = (
            _iteration_after(record, _resumed_from(job), lines, logged) if started is None else started.first_iteration
        )
        lines.append(
            _Timeline(
                job=job,
                state=state,
                request_s=request_s,
                node_s=node_s,
                begin_s=begin_s,
                end_s=end_s,
                span=span,
                first_iteration=first,
                saves=saves_of(job.folder),
            )
        )
    return lines


def _within(low: float, value: float | None, high: float) -> float:
    """Return a moment between two others; the later one if it never came."""
    return high if value is None else min(max(low, value), high)


def _request_s(job: JobRecord, earlier: JobRecord) -> float:
    """Return the time at which a further training of a run was requested."""
    claim = files.read_json(earlier.folder.successor, files.RECORD_BYTES) or {}
    moment = moment_s(claim.get("time")) if claim.get("job") == job.folder.path.name else None
    return job.folder.job.stat().st_mtime if moment is None else moment


def _node_s(job: JobRecord) -> float | None:
    """Return the time at which the first agent of a job left the queue; None if none did."""
    # The number of nodes in a manifest may be anything that another user has written.
    paths = entries.matching(job.folder.path, "node*.running")
    claims = (files.read_json(path, files.RECORD_BYTES) for path in paths)
    moments = [moment_s(claim.get("time")) for claim in claims if claim is not None]
    return min((moment for moment in moments if moment is not None), default=None)


def _end_s(job: JobRecord) -> float:
    """Return the time at which a job ended: that in its result, or the last sign of life of a lost one."""
    with contextlib.suppress(RlnbError):  # a damaged result, whose job counts as lost
        if (result := job.result) is not None and (moment := moment_s(result.ended)) is not None:
            return moment
    signs = [job.folder.result] if files.there(job.folder.result) else [*job.folder.beats(), job.folder.command]
    return max((path.stat().st_mtime for path in signs if files.there(path)), default=0.0)


def _weigh(line: _Timeline, later: _Timeline | None, record: RunRecord, logged: Iterations) -> None:
    """Set which part of a training's work the run kept.

    Args:
        line: The training.
        later: The later training that rewound the run furthest; None if there is none.
        record: The run.
        logged: Iterations of the run.
    """
    line.kept_s, started = line.end_s, line.job.started
    if started is None or line.span is None:
        line.lost_iterations = None if record.manifest.script and line.interrupted else 0
        return
    first, last = started.first_iteration, started.max_iterations
    resumed = later.first_iteration if later else None
    if line.state == "completed" and (resumed is None or resumed >= last):
        line.iterations = last - first
        return
    finished = max(first, logged.finished(line.span))
    if not line.interrupted and resumed is None:  # it still trains
        line.iterations = finished - first
        return
    boundary = _after_checkpoint(record, line, logged) if resumed is None else resumed
    boundary = min(max(boundary, first), finished)
    line.iterations, line.lost_iterations = boundary - first, finished - boundary
    moment = logged.time_s(line.span, boundary - 1) if boundary > first else line.begin_s
    line.kept_s = _within(line.begin_s, moment, line.end_s)
    complete = [save.end_s for save in line.saves or () if save.file == _resumed_file(later, record)]
    line.kept_s = _within(line.kept_s, max(complete, default=line.kept_s), line.end_s)


def _earlier_begin(line: _Timeline, later: _Timeline | None) -> _Timeline | None:
    """Return the one of two trainings that began at the earlier iteration.

    A training that never began has replaced nothing, unless it is the newest one, which may still begin.
    """
    if later is None:
        return line
    return line if line.job.started is not None and line.first_iteration <= later.first_iteration else later


def _after_checkpoint(record: RunRecord, line: _Timeline, logged: Iterations) -> int:
    """Return the iteration at which ``run.resume()`` would go on after a training."""
    newest = record.checkpoints.last_whole()
    return 0 if newest is None else _iteration_after(record, str(newest.relative_to(record.path)), [line], logged)


def _iteration_after(record: RunRecord, checkpoint: str, lines: Sequence[_Timeline], logged: Iterations) -> int:
    """Return the iteration after that of a checkpoint, by its name, since the file may be deleted by now; 0 if none.

    The name of a "best" file has no number. The file includes the iterations that were finished when it was written.

    Args:
        record: The run.
        checkpoint: Path of the checkpoint below the run's folder; empty for none.
        lines: Trainings of the run, one of which may have written the checkpoint.
        logged: Iterations of the run.
    """
    path = record.path / checkpoint
    (number,) = Checkpoints([path], record).iterations
    if not checkpoint or number is not None:
        return 0 if number is None else int(number) + 1
    times = [save.end_s for line in lines for save in line.saves or () if save.file == path.name]
    with contextlib.suppress(OSError):  # rlnb 0.1 did not record what a training wrote
        times = times or [path.stat().st_mtime]
    spans = [line.span for line in lines if line.span is not None and times and line.span.start_time <= max(times)]
    return logged.finished(spans[-1], max(times)) if spans else 0


def _resumed_from(job: JobRecord) -> str:
    """Return the path of the checkpoint from which a job goes on, below the run's folder; empty if there is none."""
    return options_of(TrainOptions, job.folder).checkpoint or ""


def _resumed_file(later: _Timeline | None, record: RunRecord) -> str:
    """Return the name of the checkpoint from which the run goes on; empty if there is none."""
    if later is not None:
        return Path(_resumed_from(later.job)).name
    newest = record.checkpoints.last_whole()
    return newest.name if newest else ""


def _parts(created_s: float, timelines: Sequence[_Timeline]) -> TimeParts:
    waiting = starting = useful = lost = saving = restarting = idle = 0.0
    end_s, recorded = created_s, False
    for number, line in enumerate(timelines):
        idle += line.request_s - end_s
        if number == 0:
            waiting += line.node_s - line.request_s
            starting += line.begin_s - line.node_s
        else:
            restarting += line.begin_s - line.request_s
        work = line.kept_s - line.begin_s
        # A backend may save before its first iteration; that is part of the start.
        saves = [save for save in line.saves or () if line.begin_s < save.end_s <= line.kept_s]
        spent = min(work, sum(save.duration_s for save in saves if 0 <= save.duration_s < math.inf))  # may be damaged
        recorded = recorded or line.saves is not None
        useful, saving, lost = useful + work - spent, saving + spent, lost + line.end_s - line.kept_s
        end_s = line.end_s
    return TimeParts(
        waiting_s=waiting,
        starting_s=starting,
        useful_s=useful,
        lost_s=lost,
        checkpointing_s=saving if recorded else math.nan,
        restarting_s=restarting,
        idle_s=idle,
    )


def _interruption(run: str, line: _Timeline) -> Interruption:
    result = line.job.result
    return Interruption(
        run=run,
        job=line.job.folder.path.name,
        time_s=line.end_s,
        cause=cause_of(result),
        error=result.error if result else "",
        lost_iterations=line.lost_iterations,
        lost_s=line.end_s - line.kept_s,
    )


def _gpus(manifest: Manifest, timelines: Sequence[_Timeline]) -> float:
    """Return the number of GPUs of a training: those that it reported, else those of its launcher; NaN if unknown."""
    for line in timelines:
        if line.job.started is not None:
            return sum(device.startswith("cuda") for device in line.job.started.devices)
    resources, per_node = manifest.resources, manifest.launcher_settings.get("gpus_per_node")
    if resources.device == "cpu":
        return 0
    if resources.device.startswith("cuda"):
        return resources.world_size
    return resources.nodes * per_node if isinstance(per_node, int) else math.nan


def _checkpoint_bytes(record: RunRecord, timelines: Sequence[_Timeline]) -> int:
    saves = [save for line in timelines for save in line.saves or () if save.size]
    size, names = sum(save.size for save in saves), {save.file for save in saves}
    checkpoints = record.checkpoints
    return size + sum(checkpoints.size(path) for path in checkpoints if path.name not in names)


def _frames(timelines: Sequence[_Timeline]) -> float:
    counts = [
        line.iterations * line.job.started.horizon * line.job.started.num_envs
        for line in timelines
        if line.job.started is not None
    ]
    return float(sum(counts)) if counts else math.nan


# -- iterations ------------------------------------------------------------------------------------------------------


_ROUNDING = 1e-6
"""Largest error of an iteration that was computed from steps."""


class Iterations:
    """The iterations of each training of a run. The event files are read on first use, since most runs need none.

    A job's points are those logged from its first iteration to that of the next job. Unlike a curve, they include the
    iterations that the next job trained again.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def finished(self, span: Span, by_s: float = math.inf) -> int:
        """Return the number of iterations of the run that were finished in a job; 0 if it has logged none.

        Args:
            span: The job.
            by_s: Time up to which iterations count, in seconds since the epoch.
        """
        numbers, times = self._of(span)
        numbers = numbers[times <= by_s]
        return int(numbers.max() + _ROUNDING) + 1 if len(numbers) else 0

    def time_s(self, span: Span, iteration: int) -> float | None:
        """Return the time at which a job finished an iteration, in seconds since the epoch; None if it never did."""
        numbers, times = self._of(span)
        later = numbers >= iteration - _ROUNDING
        return float(times[later][0]) if later.any() else None

    def last_s(self, span: Span) -> float:
        """Return the time of the last scalar of a job, in seconds since the epoch; that of its start if it has none."""
        _, times = self._of(span)
        return float(times[-1]) if len(times) else span.start_time

    def first_s(self, after_s: float) -> float | None:
        """Return the time of the first scalar that was logged after another time; None if there is none.

        The training of a script begins with it, since a script does not report its start.
        """
        _, times = self._points
        later = times[times >= after_s]
        return float(later[0]) if len(later) else None

    def _of(self, span: Span) -> tuple[np.ndarray, np.ndarray]:
        """Return the iterations of a job, from 0, and the times at which they were logged, each of shape (n,)."""
        steps, times = self._points
        starts = [other.start_time for other in self._spans]
        after = min((start for start in starts if start > span.start_time), default=float("inf"))
        mine = (times >= span.start_time) & (times < after)
        return span.iteration(steps[mine].astype(float)), times[mine]

    @functools.cached_property
    def _spans(self) -> list[Span]:
        library = self._record.library_spec
        spans = (job.span(library) for job in self._record.jobs)
        return [span for span in spans if span is not None]

    @functools.cached_property
    def _points(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps and times of the tag with the most points, in order of time."""
        import numpy as np

        reader = EventReader(self._record.folder.logs, without=SYSTEM)
        reader.end_at(ends_of(self._spans))
        reader.refresh()
        columns = map(reader.written, reader.tags)
        longest = max(columns, key=len, default=None)
        if longest is None:
            return np.empty(0, np.int64), np.empty(0)
        steps, times, _ = longest.arrays()
        order = np.argsort(times, kind="stable")
        return steps[order], times[order]


# -- causes ----------------------------------------------------------------------------------------------------------


Cause = Literal[
    "cancelled",
    "walltime",
    "hang",
    "process killed",
    "process lost",
    "preempted",
    "node lost",
    "disk full",
    "error",
]
"""``"process lost"``: nothing was left to write a result, since the agent or its machine died. ``"process killed"``: a
signal ended a rank, mostly for lack of memory, or a pod. ``"error"``: an exception of the task's, the library's or the
user's code."""
_TEXTS: tuple[tuple[Cause, str], ...] = (
    ("disk full", r"No space left"),
    ("hang", rf"^{re.escape(HANGS)}|^The worker hangs"),
    ("process killed", r"was killed by SIG|which stands for SIG"),
)
"""What the error of a job that failed says, by cause."""
_INTERRUPTIONS: tuple[tuple[Cause, str], ...] = (
    ("cancelled", r": .*was cancelled in the queue"),
    ("walltime", r": .*has reached its (time limit|deadline)"),
    ("process killed", r": .*has used more memory than it requested|was killed, and its cluster"),
    ("node lost", r": .*has lost a node"),
    ("preempted", r": .*was preempted|was revoked by the queue"),
)
"""What the error of a job that its cluster ended says, by cause. The queue's own word, after a colon, comes first."""


def cause_of(result: Result | None) -> Cause:
    """Return why a training ended before its last iteration.

    Args:
        result: The end of its job; None if the job is lost.
    """
    if result is None:
        return "process lost"
    if result.outcome == "cancelled":
        return "cancelled"
    if result.outcome == "timeout":
        return "walltime"
    texts = (*_INTERRUPTIONS, *_TEXTS) if result.interrupted else _TEXTS
    cause = next((cause for cause, text in texts if re.search(text, result.error)), None)
    return cause or ("node lost" if result.interrupted else "error")


# -- the parts of the wall time --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeParts:
    """The parts of a run's wall time, which begins with the run's creation. They sum to the wall time."""

    waiting_s: float = 0.0
    """Seconds from the creation of the run to its first node, in the queue and on Slurm in the checks of the nodes."""
    starting_s: float = 0.0
    """Seconds from the first node to the first iteration."""
    useful_s: float = 0.0
    """Seconds of training whose result the run kept, without those for checkpoints."""
    lost_s: float = 0.0
    """Seconds of training that an interruption took back, from the checkpoint that the next job resumed from, or from
    the last one if there was no next job, to the interruption."""
    checkpointing_s: float = math.nan
    """Seconds in which the first rank wrote the checkpoints that count as useful; NaN for runs of older versions of
    rlnb, which did not record them. They are part of ``useful_s`` then."""
    restarting_s: float = 0.0
    """Seconds from the request for each further job to its first iteration, including its wait in the queue."""
    idle_s: float = 0.0
    """Seconds between the end of a job and the request for the next; none in the cluster's restarts, and hours if a
    person had to call ``resume()``."""

    @property
    def wall_s(self) -> float:
        """The sum of the parts."""
        return sum(value for _, value in self.items() if not math.isnan(value))

    @property
    def useful_share(self) -> float:
        """Share of the wall time that was useful, 0 to 1; NaN if there is none."""
        return self.useful_s / self.wall_s if self.wall_s else math.nan

    def items(self) -> list[tuple[str, float]]:
        """Return the name of each part without its unit, and its seconds."""
        return [(one.name.removesuffix("_s"), getattr(self, one.name)) for one in dataclasses.fields(self)]


def total(parts: Iterable[TimeParts]) -> TimeParts:
    """Return the sum of the parts of several runs. Unrecorded seconds count as none, unless no run recorded any."""
    parts = [*parts]
    sums = {}
    for one in dataclasses.fields(TimeParts):
        values = [getattr(part, one.name) for part in parts]
        numbers = [value for value in values if not math.isnan(value)]
        sums[one.name] = sum(numbers) if numbers or not values else math.nan
    return TimeParts(**sums)
