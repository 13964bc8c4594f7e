"""The iterations that a training finished, and when, from its event files."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from rlnb.metrics.events import EventReader
from rlnb.metrics.series import Span, ends_of
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np

    from rlnb.records.record import RunRecord

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
