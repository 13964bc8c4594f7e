"""A run's metrics: the library's own event files under rlnb's names, x in frames."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import unknown
from rlnb.records.events import EventReader, Scalar
from rlnb.spec import Library

if TYPE_CHECKING:
    import pandas as pd


FRESH_S = 0.1
"""Age up to which what was read counts as new: one view of many metrics reads the files once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """How one training job counts: from ``first_step`` of the library's x axis onwards."""

    start_time: float
    """When it started, in seconds since the epoch."""
    frames_per_step: float
    """Frames per unit of the library's x axis."""
    steps_per_iteration: float
    """Units of the library's x axis per learning iteration."""
    logged_at_end: bool = False
    """Whether what an iteration logs stands where it ended on that axis, not where it began."""

    def iteration(self, step: float) -> float:
        """Return the learning iteration, from 0, of a point on the library's x axis."""
        return step / self.steps_per_iteration - self.logged_at_end

    def frames(self, step: float) -> float:
        """Return the frames at the end of that iteration."""
        return self.frames_per_step * (step if self.logged_at_end else step + self.steps_per_iteration)


class Series:
    """One metric over a run, in order of frames.

    Attributes:
        name: Metric name or raw tag.
        points: (step, wall time in seconds since the epoch, value); a resumed run is one curve.
    """

    def __init__(self, name: str, points: Sequence[Scalar], spans: Sequence[Span]) -> None:
        self.name = name
        self.points = stitch(points, spans)
        self._spans = spans

    def __len__(self) -> int:
        return len(self.points)

    @property
    def last(self) -> float:
        """The newest value; NaN when there is none."""
        return self.points[-1][2] if self.points else float("nan")

    @property
    def values(self) -> list[float]:
        return [value for _, _, value in self.points]

    @property
    def wall_time_s(self) -> list[float]:
        """Seconds since the epoch of each point."""
        return [time for _, time, _ in self.points]

    @property
    def frames(self) -> list[float]:
        """Env transitions over all ranks behind each point."""
        return [self._at(time).frames(step) for step, time, _ in self.points]

    @property
    def iterations(self) -> list[float]:
        """Learning iteration of each point, from 0."""
        return [self._at(time).iteration(step) for step, time, _ in self.points]

    def _at(self, time: float) -> Span:
        span = self._spans[0] if self._spans else Span(start_time=0.0, frames_per_step=1.0, steps_per_iteration=1.0)
        for later in self._spans:
            if later.start_time <= time:
                span = later
        return span

    def __repr__(self) -> str:
        return f"Series({self.name!r}, {len(self)} points, last={self.last:.4g})"


def stitch(points: Sequence[Scalar], spans: Sequence[Span]) -> list[Scalar]:
    """Make one curve of several jobs: where a later job repeats steps, the later job's points count.

    A job killed after its last checkpoint has logged steps that the resumed job logs again.
    """
    ordered = sorted(points, key=lambda point: point[1])
    starts = [span.start_time for span in spans[1:]]
    kept: list[Scalar] = []
    for point in ordered:
        while starts and point[1] >= starts[0]:
            kept = [earlier for earlier in kept if earlier[0] < point[0]]
            starts.pop(0)
        kept.append(point)
    return kept


class Metrics(Mapping[str, Series]):
    """The metrics of a run by rlnb's name (``"reward"``) or by the library's own tag.

    Reading is incremental: every access reads what was appended to the event files since.
    """

    def __init__(self, logs: Path, library: Library | None, spans: Sequence[Span] = ()) -> None:
        self._reader = EventReader(logs)
        self._tags = dict(library.metrics) if library else {}
        self._hidden = re.compile("|".join(library.hidden)) if library and library.hidden else None
        self._spans = list(spans)
        self._refreshed = float("-inf")

    def refresh(self, spans: Sequence[Span] | None = None) -> int:
        """Read what is new; return the number of new scalars. Calls in quick succession look at the disk once."""
        if spans is not None:
            self._spans = list(spans)
        if time.monotonic() - self._refreshed < FRESH_S:
            return 0
        found = self._reader.refresh()
        self._refreshed = time.monotonic()
        return found

    @property
    def iteration(self) -> int:
        """The last finished iteration that has logged anything; -1 before the first."""
        self.refresh()
        if not self._spans:
            return -1
        steps = (
            points[-1][0]
            for tag, points in self._reader.scalars.items()
            if not (self._hidden and self._hidden.search(tag))
        )
        newest = max(steps, default=None)
        return -1 if newest is None else int(self._spans[-1].iteration(newest))

    @property
    def names(self) -> list[str]:
        """rlnb's names that this run has logged, e.g. ``["reward", "episode_length", ...]``."""
        self.refresh()
        return [name for name, tag in self._tags.items() if tag in self._reader.scalars]

    @property
    def tags(self) -> list[str]:
        """Every raw tag, without those that only repeat another on a different x axis."""
        self.refresh()
        return sorted(tag for tag in self._reader.scalars if not (self._hidden and self._hidden.search(tag)))

    def __getitem__(self, name: str) -> Series:
        self.refresh()
        tag = self._tags.get(name, name)
        if tag not in self._reader.scalars:
            if name in self._tags:  # known, but nothing logged yet
                return Series(name, [], self._spans)
            raise unknown("metric", name, [*self._tags, *self.tags], has="Logged")
        return Series(name, self._reader.scalars[tag], self._spans)

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.tags

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def frame(self, *names: str) -> pd.DataFrame:
        """Return tidy data, one row a point.

        Args:
            names: Metric names or raw tags; all of rlnb's names when none is given.

        Returns:
            Columns ``metric``, ``iteration``, ``frames``, ``wall_time_s`` (seconds since the epoch), ``value``.
        """
        import pandas as pd

        parts = []
        for name in names or self.names:
            series = self[name]
            parts.append(
                pd.DataFrame(
                    {
                        "metric": name,
                        "iteration": series.iterations,
                        "frames": series.frames,
                        "wall_time_s": series.wall_time_s,
                        "value": series.values,
                    }
                )
            )
        columns = ["metric", "iteration", "frames", "wall_time_s", "value"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self[name].last:.4g}" for name in self.names)
        return f"Metrics({shown})"
