"""A run's metrics: the scalars of the library's event files, under rlnb's names and with frames as the x axis."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rlnb.errors import unknown
from rlnb.metrics import folders
from rlnb.metrics.columns import Column, Scalar
from rlnb.metrics.events import EventReader
from rlnb.metrics.series import Series, Span
from rlnb.registration.library import Library
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


_OF_TERMS = re.compile(r"(?:^|[/ ])Episode_(?:Reward|Termination)/")
"""Isaac Lab's tags of reward terms and terminations, of which a task may have dozens."""
FRESH_S = 0.1
"""Seconds during which a refresh is not repeated, so that a view of many metrics reads the files once."""


def _group(tag: str) -> str:
    """Return the part of a tag before its first slash, such as ``"Loss"``."""
    return tag.partition("/")[0].strip()


class Metrics(Mapping[str, Series]):
    """The metrics of a run by rlnb's name (``"reward"``) or by the library's own tag.

    A tag that is in several folders is several curves, which have the folder in their names: ``"loss [train/]"``. The
    tag alone then stands for the folder that had it first.

    Reading is incremental: every access reads the records appended to the event files since the last one.
    """

    def __init__(
        self, logs: Path, library: Library | None, spans: Sequence[Span] = (), *, by_time: bool = False
    ) -> None:
        self._reader = EventReader(logs, without=SYSTEM, by_time=by_time)
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
        return [name.removeprefix(tag) for name, curve in self._reader.curves.items() if curve.tag == tag]

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
        found = (folders.find(tag, self._reader.curves) for tag in (*of_folders, self._tag(name)))
        return next((curve for curve in found if curve is not None), None)

    @property
    def plain_tags(self) -> set[str]:
        """Every raw tag, without the folders that a name may have."""
        return {curve.tag for curve in self._reader.curves.values()}

    @property
    def tags(self) -> list[str]:
        """Every raw tag, with its folder if several have it, except tags that repeat another on a different x axis."""
        self.refresh()
        return sorted(
            name for name, curve in self._reader.curves.items() if not (self._hidden and self._hidden.search(curve.tag))
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
            if self._reader.curves[tag].tag not in mapped and _group(tag) not in groups and not _OF_TERMS.search(tag)
        ]

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

    def last(self, name: str) -> float:
        """Return the newest value of a metric, NaN if there is none, in constant time for any length of curve."""
        self.refresh()
        curve = self._curve(name)
        point = self._newest(curve) if curve is not None else None
        return point[2] if point else float("nan")

    @property
    def clock(self) -> Series | None:
        """The metric with the most points, which maps wall time to progress; None before anything is logged."""
        name = max(self.tags, key=lambda name: len(self._reader.curves[name].column), default=None)
        return None if name is None else self[name]

    def _newest(self, curve: str) -> Scalar | None:
        """Return the last point of a curve by the reader's name; None if a restart has removed all points."""
        ahead = self._reader.ahead(curve)
        points = ahead if len(ahead) else self._reader.curves[curve].column
        return points[-1] if len(points) else None

    @property
    def revision(self) -> int:
        """A number that grows when earlier points have changed: a job was resumed, a script was restarted."""
        self.refresh()
        return len(self._spans) + self._reader.revision

    def __contains__(self, name: object) -> bool:
        self.refresh()
        return isinstance(name, str) and self._curve(name) is not None

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
