"""The account of one run: the parts of its wall time, its interruptions, and what it cost."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.accounting.causes import Cause, cause_of
from rlnb.accounting.iterations import Iterations
from rlnb.accounting.parts import Parts
from rlnb.errors import RlnbError
from rlnb.metrics.series import Span
from rlnb.records.checkpoints import Checkpoints
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import JobRecord, RunRecord
from rlnb.records.restarts import never_trained
from rlnb.records.saves import Save, saves_of
from rlnb.spec import ENDED, Manifest, State
from rlnb.storage import entries, files
from rlnb.storage.clock import moment_s

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
    parts: Parts
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
        result = None if self.state == "lost" else self.job.result
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
        later: Of all trainings after it, the one that took the run back the furthest; None if there is none.
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


def _parts(created_s: float, timelines: Sequence[_Timeline]) -> Parts:
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
    return Parts(
        waiting_s=waiting,
        starting_s=starting,
        useful_s=useful,
        lost_s=lost,
        checkpointing_s=saving if recorded else math.nan,
        restarting_s=restarting,
        idle_s=idle,
    )


def _interruption(run: str, line: _Timeline) -> Interruption:
    result = None if line.state == "lost" else line.job.result
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
