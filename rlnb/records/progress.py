"""How far a training is, and how long it still takes."""

from __future__ import annotations

from typing import NamedTuple

from rlnb.metrics.metrics import NewestValues
from rlnb.records.record import RunRecord
from rlnb.spec import State
from rlnb.storage.clock import age_s


class Progress(NamedTuple):
    """The iterations of a training."""

    finished: int
    """Number of finished iterations, including those before a resume."""
    total: int
    """Number at which the training ends; 0 if that is unknown."""

    @property
    def share(self) -> float:
        """The finished part, 0 to 1; 0 if the total is unknown."""
        if self.total <= 0:
            return 0.0
        return 1.0 if self.finished >= self.total else self.finished / self.total

    @property
    def text(self) -> str:
        """The progress as text, such as ``"3 of 10"``; empty if the total is unknown."""
        return f"{self.finished} of {self.total}" if self.total else ""


UNKNOWN = Progress(0, 0)


def progress_of(record: RunRecord, metrics: NewestValues | None) -> Progress:
    """Return the progress of a run's training. While a resumed training starts, it is that of the training before.

    Args:
        record: The run.
        metrics: Its newest values; None leaves out what has been logged since the training started.
    """
    records = (job.started for job in reversed(record.jobs) if job.kind == "train")
    started = next(filter(None, records), None)
    if started is None:
        return Progress(0, record.manifest.max_iterations or 0)
    logged = metrics.iteration + 1 if metrics is not None else 0
    return Progress(max(logged, started.first_iteration), started.max_iterations)


def remaining_s(record: RunRecord, state: State, progress: Progress) -> float | None:
    """Return the remaining seconds of a training at its average pace so far; None if that is unknown.

    Only the clock of the file system counts: those of the node and of this machine may differ.
    """
    job = record.training
    started = job.started if job else None
    if job is None or started is None or state != "running" or progress.finished <= started.first_iteration:
        return None
    pace_s = age_s(job.folder.started) / (progress.finished - started.first_iteration)
    return pace_s * max(0, progress.total - progress.finished)
