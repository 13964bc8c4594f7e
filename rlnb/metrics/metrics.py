"""A run's metrics: the scalars of the library's event files, under rlnb's names and with frames as the x axis."""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rlnb.contracts.libraries import Library
from rlnb.errors import unknown
from rlnb.metrics import folders
from rlnb.metrics.columns import Column, Scalar
from rlnb.metrics.events import EventReader
from rlnb.metrics.folders import Curve
from rlnb.metrics.series import Series, Span, ends_of
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


# -- newest values ---------------------------------------------------------------------------------------------------


_OF_TERMS = re.compile(r"(?:^|[/ ])Episode_(?:Reward|Termination)/")
"""Isaac Lab's tags of reward terms and terminations, of which a task may have dozens."""


def _group(tag: str) -> str:
    """Return the part of a tag before its first slash, such as ``"Loss"``."""
    return tag.partition("/")[0].strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class LastPoint:
    """The last point of a curve."""

    tag: str
    folder: str
    """Folder of the event files below the logs, with slashes; empty for the logs themselves."""
    step: int | None
    """None if a restart has removed all points of the curve."""
    value: float


def grouped(tags: Iterable[str]) -> dict[str, list[str]]:
    """Return tags by the begin of their names, that is the part before the last slash; that of rewards is the first."""
    groups: dict[str, list[str]] = {}
    for tag in sorted(tags):
        groups.setdefault(tag.rpartition("/")[0], []).append(tag)
    first = {
        name: number for number, name in enumerate(("Episode_Reward", "Metrics", "Episode_Termination", "Curriculum"))
    }
    return {
        name: groups[name] for name in sorted(groups, key=lambda name: (first.get(name, len(first)), name == "", name))
    }


class NewestValues(ABC):
    """The names of metrics, rlnb's (``"reward"``) and the library's own tags, and their newest values."""

    def __init__(self, library: Library | None, spans: Sequence[Span]) -> None:
        """Name the metrics of a run.

        Args:
            library: Library whose tags have names of rlnb; None if there is none.
            spans: How each job of the run counts steps.
        """
        self._tags = dict(library.metrics) if library else {}
        self._former = dict(library.former_metrics) if library else {}
        self._hidden = re.compile("|".join(library.hidden)) if library and library.hidden else None
        self._spans = list(spans)

    @abstractmethod
    def refresh(self) -> int:
        """Read newly logged scalars and return their number."""

    @property
    @abstractmethod
    def _curves(self) -> Mapping[str, folders.Named]:
        """The curves by name, the oldest folder of each tag first."""

    @abstractmethod
    def _newest(self, curve: str) -> tuple[int, float] | None:
        """Return step and value of the last point of a curve; None if a restart has removed all points."""

    @property
    def iteration(self) -> int:
        """The last finished iteration that has logged anything; -1 before the first."""
        self.refresh()
        if not self._spans:
            return -1
        newest = max((point[0] for name in self.tags if (point := self._newest(name))), default=None)
        return -1 if newest is None else int(self._spans[-1].iteration(newest))

    @property
    def names(self) -> list[str]:
        """Logged metrics under rlnb's names, e.g. ``["reward", "fps"]``; raw tags for a script without such names."""
        self.refresh()
        if not self._tags:
            return self.tags
        return [name + folder for name in self._tags for folder in self._folders_of(self._tag(name))]

    def _folders_of(self, tag: str) -> list[str]:
        """Return the ends of the names of a tag's curves, which are empty if one folder has the tag."""
        return [name.removeprefix(tag) for name, curve in self._curves.items() if curve.tag == tag]

    def _tag(self, name: str) -> str:
        """Return the tag of a metric: the library's present one, unless only its former one is logged."""
        tag, former = self._tags.get(name, name), self._former.get(name)
        if former is None or tag in (tags := self.plain_tags):
            return tag
        return former if former in tags else tag

    def _curve(self, name: str) -> str | None:
        """Return the reader's name of a curve; None if nothing was logged under the name."""
        of_folders = [
            self._tag(base) + name[len(base) :]
            for base in (self._tags if name.endswith("]") else ())
            if name.startswith(f"{base} [")
        ]
        found = (folders.find(tag, self._curves) for tag in (*of_folders, self._tag(name)))
        return next((curve for curve in found if curve is not None), None)

    @property
    def plain_tags(self) -> set[str]:
        """Every raw tag, without the folders that a name may have."""
        return {curve.tag for curve in self._curves.values()}

    @property
    def tags(self) -> list[str]:
        """Every raw tag, with its folder if several have it, except tags that repeat another on a different x axis."""
        self.refresh()
        return sorted(
            name for name, curve in self._curves.items() if not (self._hidden and self._hidden.search(curve.tag))
        )

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
            if self._curves[tag].tag not in mapped and _group(tag) not in groups and not _OF_TERMS.search(tag)
        ]

    @property
    def unnamed(self) -> list[str]:
        """Tags that have no name of rlnb: reward terms, terminations, and what the task or a library adds."""
        if not self._tags:  # a script, whose tags are its names
            return []
        mapped = {self._tag(name) for name in self._tags}
        return [tag for tag in self.tags if self._curves[tag].tag not in mapped]

    @property
    def groups(self) -> dict[str, list[str]]:
        """The tags of :attr:`unnamed` by the begin of their names: ``{"Episode_Reward": ["Episode_Reward/alive"]}``.

        Those without a slash have the begin ``""``.
        """
        return grouped(self.unnamed)

    def last(self, name: str) -> float:
        """Return the newest value of a metric, NaN if there is none, in constant time for any length of curve."""
        self.refresh()
        curve = self._curve(name)
        point = self._newest(curve) if curve is not None else None
        return point[1] if point else float("nan")

    def __contains__(self, name: object) -> bool:
        self.refresh()
        return isinstance(name, str) and self._curve(name) is not None


class LastValues(NewestValues):
    """The same from the last point of each curve, for a run that has ended.

    Args:
        points: The last points, the oldest folder of each tag first.
        library: Library of the run.
        spans: How each job of the run counts steps.
    """

    def __init__(self, points: Sequence[LastPoint], library: Library | None, spans: Sequence[Span]) -> None:
        super().__init__(library, spans)
        self._points = folders.named(points)

    def refresh(self) -> int:
        """Return 0: nothing is logged any more."""
        return 0

    @property
    def _curves(self) -> Mapping[str, LastPoint]:
        return self._points

    def _newest(self, curve: str) -> tuple[int, float] | None:
        point = self._points[curve]
        return None if point.step is None else (point.step, point.value)


# -- metrics ---------------------------------------------------------------------------------------------------------


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
        """A number that grows when earlier points have changed, since a job was resumed or a script was restarted."""
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
        groups = ", ".join(f"{name or 'others'} ({len(tags)})" for name, tags in self.groups.items())
        return f"Metrics({values or self.unread}{f'; in .groups: {groups}' if groups else ''})"


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


# -- last points -----------------------------------------------------------------------------------------------------


class _End(Column):
    """The last scalar of a tag in one file, and the smallest step of the restarts after it."""

    __slots__ = ("last", "restarted")

    def __init__(self) -> None:
        super().__init__()
        self.last: Scalar | None = None
        self.restarted: int | None = None

    def append(self, step: int, time: float, value: float) -> None:
        self.last, self.restarted = (step, time, value), None

    def append_arrays(self, steps: np.ndarray, times: np.ndarray, values: np.ndarray) -> None:
        if len(steps):
            self.append(int(steps[-1]), float(times[-1]), float(values[-1]))

    def restart(self, step: int) -> None:
        self.restarted = step if self.restarted is None else min(step, self.restarted)


class _EndReader(EventReader):
    """Reads event files once, and keeps the last point of each curve only."""

    _column = _End

    def points(self, limit_s: float) -> list[LastPoint] | None:
        """Return the last point of each curve; None if a restart has removed one, so that an earlier one counts."""
        self._read_files(time.monotonic() + limit_s)
        self._name()
        points = []
        for curve in self.curves.values():
            last, restarted = _last(curve)
            if last is None or (restarted is not None and last[0] >= restarted):
                return None
            points.append(LastPoint(tag=curve.tag, folder=curve.folder, step=last[0], value=last[2]))
        return points


def _last(curve: Curve) -> tuple[Scalar | None, int | None]:
    """Return the point of a curve that was written last, and the smallest step of the restarts after it."""
    restarts: list[int | None] = []
    for file in reversed(curve.files):
        column = file.scalars.get(curve.tag)
        if isinstance(column, _End):
            restarts.append(column.restarted)
            return column.last, min((step for step in restarts if step is not None), default=None)
        restarts.append(file.restart)
    return None, None


def last_points(logs: Path, ends: Mapping[str, int], limit_s: float = math.inf) -> tuple[Sequence[LastPoint], bool]:
    """Return the last point of each curve, the oldest folder of each tag first, and whether all files were read whole.

    Args:
        logs: Folder of the event files of a run.
        ends: Number of bytes of a file to read, by path below the folder; other files are read to their end.
        limit_s: Seconds after which reading stops.
    """
    deadline = time.monotonic() + limit_s
    reader = _EndReader(logs, without=SYSTEM)
    reader.end_at(ends)
    points = reader.points(limit_s)
    if points is not None:
        return points, reader.is_whole
    whole = EventReader(logs, without=SYSTEM)
    whole.end_at(ends)
    whole.refresh(deadline - time.monotonic())
    return [_point(curve) for curve in whole.curves.values()], whole.is_whole


def _point(curve: Curve) -> LastPoint:
    last = curve.column[-1] if len(curve.column) else None
    return LastPoint(
        tag=curve.tag,
        folder=curve.folder,
        step=None if last is None else last[0],
        value=math.nan if last is None else last[2],
    )
