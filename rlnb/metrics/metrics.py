"""A run's metrics: the scalars of the library's event files, under rlnb's names and with frames as the x axis."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from rlnb.errors import unknown
from rlnb.metrics.events import Column, EventReader, Scalar
from rlnb.registration.library import Library
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


N = TypeVar("N", float, "np.ndarray")

_OF_TERMS = re.compile(r"(?:^|[/ ])Episode_(?:Reward|Termination)/")
"""Isaac Lab's tags of reward terms and terminations, of which a task may have dozens."""
FRESH_S = 0.1
"""Seconds during which a refresh is not repeated, so that a view of many metrics reads the files once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """How one training job counts steps on the library's x axis."""

    start_time: float
    """Start of the job, in seconds since the epoch."""
    frames_per_step: float
    """Frames per unit of the library's x axis."""
    steps_per_iteration: float
    """Units of the library's x axis per learning iteration."""
    logged_at_end: bool = False
    """Whether an iteration logs at the step where it ended; otherwise it logs at the step where it began."""
    logged: Mapping[str, int] = field(default_factory=dict)
    """Bytes at which event files of earlier jobs end, by path below the logs; other files are read to their end."""

    def iteration(self, step: N) -> N:
        """Return the learning iteration, from 0, of a point on the library's x axis."""
        return step / self.steps_per_iteration - float(self.logged_at_end)

    def frames(self, step: N) -> N:
        """Return the frames at the end of the iteration that logged at ``step``."""
        return self.frames_per_step * (step if self.logged_at_end else step + self.steps_per_iteration)


class Series:
    """One metric over a run, in order of frames; a resumed run is one curve."""

    def __init__(self, name: str, points: Column | Sequence[Scalar], spans: Sequence[Span]) -> None:
        """Make a curve of logged points.

        Args:
            name: Metric name or raw tag.
            points: (step, wall time in seconds since the epoch, value), as logged by all jobs of the run.
            spans: How each job of the run counts steps.
        """
        import numpy as np

        if isinstance(points, Column):
            steps, times, values = points.arrays()
        else:
            steps, times, values = (np.array([point[part] for point in points]) for part in range(3))
        places = stitch(steps, times, spans)
        self._set(name, (steps[places], times[places], values[places]), spans)

    @classmethod
    def of(cls, name: str, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], spans: Sequence[Span]) -> Series:
        """Return a curve of points already in order: steps, wall times and values, each of shape (n,)."""
        series = cls.__new__(cls)
        series._set(name, arrays, spans)
        return series

    def _set(self, name: str, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], spans: Sequence[Span]) -> None:
        self.name, self._spans = name, spans
        self._steps, self._times, self._values = arrays

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> float:
        """The newest value; NaN if there is none."""
        return float(self._values[-1]) if len(self) else float("nan")

    @property
    def points(self) -> list[Scalar]:
        """Step, wall time in seconds since the epoch, value of each point."""
        return list(zip(self._steps.tolist(), self._times.tolist(), self._values.tolist(), strict=True))

    @property
    def values(self) -> list[float]:
        return self.array("values").tolist()  # type: ignore[no-any-return]

    @property
    def wall_time_s(self) -> list[float]:
        """Time of each point, in seconds since the epoch."""
        return self.array("wall_time").tolist()  # type: ignore[no-any-return]

    @property
    def frames(self) -> list[float]:
        """Env transitions of all ranks up to each point."""
        return self.array("frames").tolist()  # type: ignore[no-any-return]

    @property
    def iterations(self) -> list[float]:
        """Learning iteration of each point, from 0."""
        return self.array("iterations").tolist()  # type: ignore[no-any-return]

    def array(self, what: Literal["values", "wall_time", "frames", "iterations"]) -> np.ndarray:
        """Return one of the lists as a float64 array, for curves of millions of points."""
        import numpy as np

        if what == "values":
            return self._values.astype(np.float64)
        if what == "wall_time":
            return self._times.astype(np.float64)
        numbers = np.empty(len(self))
        spans = self._spans or [Span(start_time=0.0, frames_per_step=1.0, steps_per_iteration=1.0)]
        # A point belongs to the last job started before it; points before every job belong to the first job.
        of = np.searchsorted([span.start_time for span in spans], self._times, side="right") - 1
        for number, span in enumerate(spans):
            mine = np.maximum(of, 0) == number
            steps = self._steps[mine].astype(np.float64)
            numbers[mine] = span.frames(steps) if what == "frames" else span.iteration(steps)
        return numbers

    def thinned(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return frames and values of at most ``most`` points that keep the curve's extremes and shape, without NaN."""
        import numpy as np

        from rlnb.metrics.thinning import decimate

        frames, values = self.array("frames"), self.array("values")
        finite = np.isfinite(values)
        return decimate(frames[finite], values[finite], most)

    def __repr__(self) -> str:
        return f"Series({self.name!r}, {len(self)} points, last={self.last:.4g})"


def stitch(steps: np.ndarray, times: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
    """Join the points of several jobs into one curve; a job replaces all earlier points from its first step on.

    A job killed after its last checkpoint has logged steps that the resumed job logs again.

    Args:
        steps: Step of each point as logged, shape (n,).
        times: Time of each point in seconds since the epoch, shape (n,).
        spans: The jobs, in the order of their starts.

    Returns:
        Indices of the points of the curve, in order, shape (m,).
    """
    import numpy as np

    order = np.argsort(times, kind="stable")
    bounds = np.searchsorted(times[order], [span.start_time for span in spans[1:]])
    curve = order[:0]
    for part in np.split(order, bounds):
        if len(part):
            curve = np.concatenate([curve[steps[curve] < steps[part[0]]], part])
    return curve


def _group(tag: str) -> str:
    """Return the part of a tag before its first slash, such as ``"Loss"``."""
    return tag.partition("/")[0].strip()


class Metrics(Mapping[str, Series]):
    """The metrics of a run by rlnb's name (``"reward"``) or by the library's own tag.

    Reading is incremental: every access reads the records appended to the event files since the last one.
    """

    def __init__(self, logs: Path, library: Library | None, spans: Sequence[Span] = ()) -> None:
        self._reader = EventReader(logs, without=SYSTEM)
        self._tags = dict(library.metrics) if library else {}
        self._former = dict(library.former_metrics) if library else {}
        self._hidden = re.compile("|".join(library.hidden)) if library and library.hidden else None
        self._spans = list(spans)
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
        if self._reader.end_at({path: size for span in reversed(spans) for path, size in span.logged.items()}):
            self._refreshed = float("-inf")

    def refresh(self) -> int:
        """Read newly logged scalars and return their number. Calls within ``FRESH_S`` access the disk once."""
        if time.monotonic() - self._refreshed < FRESH_S:
            return 0
        count = self._reader.refresh(self.limit_s)
        self._refreshed = time.monotonic()
        return count

    @property
    def iteration(self) -> int:
        """The last finished iteration that has logged anything; -1 before the first."""
        self.refresh()
        if not self._spans:
            return -1
        newest = max((self._newest(tag)[0] for tag in self.tags), default=None)
        return -1 if newest is None else int(self._spans[-1].iteration(newest))

    @property
    def names(self) -> list[str]:
        """Logged metrics under rlnb's names, e.g. ``["reward", "fps"]``; raw tags for a script without such names."""
        self.refresh()
        tags = self._reader.tags
        if not self._tags:
            return self.tags
        return [name for name in self._tags if self._tag(name) in tags]

    def _tag(self, name: str) -> str:
        """Return the tag of a metric: the library's present one, unless only its former one is logged."""
        tag, former = self._tags.get(name, name), self._former.get(name)
        if former is None or tag in (tags := self._reader.tags):
            return tag
        return former if former in tags else tag

    @property
    def tags(self) -> list[str]:
        """Every raw tag, except those that only repeat another tag on a different x axis."""
        self.refresh()
        return sorted(tag for tag in self._reader.tags if not (self._hidden and self._hidden.search(tag)))

    @property
    def of_task(self) -> list[str]:
        """Tags that the task has logged itself (``extras["log"]``), without its reward terms and terminations.

        Libraries write them beside their own tags. They are those outside of the groups of the library's own tags. The
        success rate, which Isaac Lab's tasks log as ``Metrics/success_rate``, is a metric of rlnb.
        """
        groups = {_group(tag) for tag in (*self._tags.values(), *self._former.values()) if "Metrics/" not in tag}
        mapped = {self._tag(name) for name in self._tags}
        return [
            tag
            for tag in (self.tags if self._tags else ())
            if tag not in mapped and _group(tag) not in groups and not _OF_TERMS.search(tag)
        ]

    def __getitem__(self, name: str) -> Series:
        return self.whole(name)[0]

    def whole(self, name: str) -> tuple[Series, int]:
        """Return a metric, and the number of its points that :meth:`newer` can skip from then on."""
        self.refresh()
        tag = self._tag(name)
        if tag not in self._reader.tags:
            if name in self._tags:  # the library has this metric, but has not logged it yet
                return Series(name, [], self._spans), 0
            raise unknown("metric", name, [*self._tags, *self.tags], has="Logged")
        read, ahead = self._reader.scalars.get(tag, Column()), self._reader.ahead(tag)
        points = Column()
        for part in (read, ahead):
            points.extend(part)
        return Series(name, points if len(ahead) else read, self._spans), len(read)

    def newer(self, name: str, first: int) -> tuple[Series, int]:
        """Return the points of a metric from index ``first`` on, and the number of all its points.

        A view that already has the earlier points reads no point twice, so that an update costs the same after a
        million points as after ten. Points that a resumed job logs again are not removed: if :attr:`jobs` changes or
        :attr:`behind` is not 0, call :meth:`whole`.
        """
        self.refresh()
        column = self._reader.scalars.get(self._tag(name), Column())
        return Series.of(name, column.arrays(first), self._spans), len(column)

    def last(self, name: str) -> float:
        """Return the newest value of a metric, NaN if there is none, in constant time for any length of curve."""
        self.refresh()
        tag = self._tag(name)
        return self._newest(tag)[2] if tag in self._reader.tags else float("nan")

    @property
    def clock(self) -> Series | None:
        """The metric with the most points, which maps wall time to progress; None before anything is logged."""
        tag = max(self.tags, key=lambda tag: len(self._reader.scalars.get(tag, ())), default=None)
        return None if tag is None else self[tag]

    def _newest(self, tag: str) -> Scalar:
        """Return the last point of a tag, which must have one."""
        ahead = self._reader.ahead(tag)
        return (ahead if len(ahead) else self._reader.scalars[tag])[-1]

    @property
    def jobs(self) -> int:
        """Number of training jobs that have logged."""
        return len(self._spans)

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.tags

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
        return f"Metrics({values})"


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
        super().__init__(folder, None)
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
