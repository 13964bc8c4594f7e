"""A run's metrics: the scalars of the library's event files, under rlnb's names and with frames as the x axis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rlnb.contracts.libraries import Library
from rlnb.errors import unknown
from rlnb.metrics.columns import Column
from rlnb.metrics.events import EventReader
from rlnb.metrics.folders import Curve
from rlnb.metrics.newest import NewestValues
from rlnb.metrics.series import Series, Span, ends_of
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


FRESH_S = 0.1
"""Seconds during which a refresh is not repeated, so that a view of many metrics reads the files once."""


class Metrics(NewestValues, Mapping[str, Series]):
    """The metrics of a run by rlnb's name (``"reward"``) or by the library's own tag.

    A tag that is in several folders is several curves, which have the folder in their names: ``"loss [train/]"``. The
    tag alone then stands for the folder that had it first.

    Reading is incremental: every access reads the records appended to the event files since the last one.
    """

    def __init__(
        self, logs: Path, library: Library | None, spans: Sequence[Span] = (), *, by_time: bool = False
    ) -> None:
        super().__init__(library, spans)
        self._reader = EventReader(logs, without=SYSTEM, by_time=by_time)
        self._refreshed = float("-inf")
        self.limit_s = float("inf")
        """Seconds after which reading stops until the next access; then the newest points of long files come first."""

    @property
    def behind(self) -> int:
        """Bytes left unread when reading reached ``limit_s``."""
        return self._reader.behind

    def count_by(self, spans: Sequence[Span]) -> None:
        """Set how the jobs of the run count steps."""
        self._spans = list(spans)
        if self._reader.end_at(ends_of(spans)):
            self._refreshed = float("-inf")

    def refresh(self) -> int:
        """Read newly logged scalars and return their number. Calls within ``FRESH_S`` access the disk once."""
        if time.monotonic() - self._refreshed < FRESH_S:
            return 0
        count = self._reader.refresh(self.limit_s)
        self._refreshed = time.monotonic()
        return count

    @property
    def unread(self) -> str:
        """Why there are no metrics, although something was logged; empty if there are metrics or nothing was logged."""
        self.refresh()
        kinds = self._reader.others
        if self._reader.curves or not kinds:
            return ""
        values = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return f"the event files hold no scalars, only {values}"

    def __getitem__(self, name: str) -> Series:
        return self.whole(name)[0]

    def whole(self, name: str) -> tuple[Series, int]:
        """Return a metric, and the number of its points that :meth:`newer` can skip from then on."""
        self.refresh()
        curve = self._curve(name)
        if curve is None:
            if name in self._tags:  # the library has this metric, but has not logged it yet
                return Series(name, [], self._spans), 0
            raise unknown("metric", name, [*self._tags, *self.tags], has="Logged")
        read, ahead = self._reader.curves[curve].column, self._reader.ahead(curve)
        points = read
        if len(ahead):
            points = Column()
            for part in (read, ahead):
                points.extend(part)
        return Series(name, points, self._spans), len(read)

    def newer(self, name: str, first: int) -> tuple[Series, int]:
        """Return the points of a metric from index ``first`` on, and the number of all its points.

        A view that already has the earlier points reads no point twice, so that an update costs the same after a
        million points as after ten. Points that a resumed job logs again are not removed: if :attr:`revision` changes
        or :attr:`behind` is not 0, call :meth:`whole`.
        """
        self.refresh()
        curve = self._curve(name)
        column = Column() if curve is None else self._reader.curves[curve].column
        return Series.of(name, column.arrays(first), self._spans), len(column)

    @property
    def clock(self) -> Series | None:
        """The metric with the most points, which maps wall time to progress; None before anything is logged."""
        name = max(self.tags, key=lambda name: len(self._reader.curves[name].column), default=None)
        return None if name is None else self[name]

    @property
    def _curves(self) -> Mapping[str, Curve]:
        return self._reader.curves

    def _newest(self, curve: str) -> tuple[int, float] | None:
        ahead = self._reader.ahead(curve)
        points = ahead if len(ahead) else self._reader.curves[curve].column
        return (points[-1][0], points[-1][2]) if len(points) else None

    @property
    def revision(self) -> int:
        """A number that grows when earlier points have changed: a job was resumed, a script was restarted."""
        self.refresh()
        return len(self._spans) + self._reader.revision

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def frame(self, *names: str) -> pd.DataFrame:
        """Return tidy data, with one row per point.

        Args:
            names: Metric names or raw tags; none for all logged metrics.

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
                        "iteration": series.array("iterations"),
                        "frames": series.array("frames"),
                        "wall_time_s": series.array("wall_time"),
                        "value": series.array("values"),
                    }
                )
            )
        columns = ["metric", "iteration", "frames", "wall_time_s", "value"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={self.last(name):.4g}" for name in self.names)
        return f"Metrics({values or self.unread})"


class SystemSeries(Series):
    """One measure of a node over time; the run's logged metrics map its times to frames and iterations."""

    def __init__(self, series: Series, clock: Callable[[], Series | None]) -> None:
        """Place a curve over time on the x axes of a run.

        Args:
            series: The measured values.
            clock: Returns a metric of the run, or None before the first; called only for frames and iterations.
        """
        self._set(series.name, (series._steps, series._times, series._values), ())
        self._clock = clock

    def array(self, what: Literal["values", "wall_time", "frames", "iterations"]) -> np.ndarray:
        """Return one of the lists as a float64 array; frames and iterations are interpolated over wall time."""
        import numpy as np

        if what in ("values", "wall_time"):
            return super().array(what)
        clock = self._clock()
        if clock is None or not len(clock):
            return np.zeros(len(self))
        return np.interp(self._times, clock.array("wall_time"), clock.array(what))


class SystemMetrics(Metrics):
    """The load of a run on its nodes, as sampled by their agents: ``system/node0/cpu_cores`` and so on."""

    def __init__(self, folder: Path, training: Callable[[], Metrics]) -> None:
        super().__init__(folder, None, by_time=True)
        self._clock = lambda: training().clock

    @property
    def names(self) -> list[str]:
        """Names of the measures."""
        return self.tags

    def whole(self, name: str) -> tuple[Series, int]:
        """Return a measure, and the number of its points that :meth:`newer` can skip from then on."""
        series, count = super().whole(name)
        return SystemSeries(series, self._clock), count

    def newer(self, name: str, first: int) -> tuple[Series, int]:
        """Return the points of a measure from index ``first`` on, and the number of all its points."""
        series, count = super().newer(name, first)
        return SystemSeries(series, self._clock), count
