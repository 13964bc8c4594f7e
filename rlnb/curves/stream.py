"""The points of runs' curves that a page does not have yet. The kernel decimates them and the page keeps them.

A page keeps every curve and decimates it while it grows. A message contains the points logged since the last message,
or whole curves. The size of a message is bounded: a whole curve without room waits for the next message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlnb.curves import figure, progress
from rlnb.curves.figure import begin_s, mean_of, source, x_values
from rlnb.display.table import counted
from rlnb.errors import NotFoundError
from rlnb.metrics.series import decimate
from rlnb.records.arguments import ALIKE, shared_arguments
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json, State

POINTS = 600
"""Most points of a curve that is read whole. The kernel's copy of a curve has at most twice as many."""
POINT_BYTES = 12
"""Bytes of a point: x as float64, y as float32."""
MOST_BYTES = 16_000
"""Most bytes of points in one message, enough for a whole curve."""
BAND: tuple[Literal["low", "high", "mean"], ...] = ("low", "high", "mean")
"""The curves of a group in drawing order. The band is between the first two."""
How = Literal["set", "add"]


@dataclass(frozen=True, slots=True)
class Change:
    """Points for one curve of a page."""

    number: int
    """Number of the curve: ``metric * runs + run``."""
    how: How
    """Whether the points replace the curve or are appended to it."""
    x: np.ndarray
    """x values. Shape (n,), float64."""
    y: np.ndarray
    """y values. Shape (n,), float32."""


class Curve:
    """One metric of one run, in the form that the page has or will get."""

    def __init__(self, run: RunFacts, metric: str, x: str) -> None:
        self._run, self._metric, self._x = run, metric, x
        self._count, self._revision, self._whole, self._begin_s = 0, -1, False, 0.0
        # On these axes, the x value of a sample between two logged points is known only after the second point.
        self._moves = metric.startswith(f"{SYSTEM}/") and x != "wall_time"
        self.x, self.y = np.empty(0), np.empty(0, np.float32)
        self.due = False
        """Whether the whole curve has to be sent to the page."""

    def read(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Update the curve; return points to append, or None if there are none or the whole curve is due."""
        metrics = source(self._run, self._metric)
        if self._moves or not (self._whole and metrics.revision == self._revision):
            self._read_all()
            return None
        part, count = metrics.newer(self._metric, self._count)
        if count == self._count:
            return None
        self._count = count
        x, y = _finite(x_values(self._run, part, self._x, self._begin_s), part.array("values"))
        x, y = decimate(x, y, POINTS)
        self.x, self.y = np.concatenate([self.x, x]), np.concatenate([self.y, y])
        if len(self.x) > 2 * POINTS:
            self.x, self.y = decimate(self.x, self.y, POINTS)
        return None if self.due or not len(x) else (x, y)

    def _read_all(self) -> None:
        metrics = source(self._run, self._metric)
        revision = metrics.revision  # read first, so that a change during the reading is seen by the next one
        try:
            series, self._count = metrics.whole(self._metric)
        except NotFoundError:
            return
        self._revision, self._whole = revision, not metrics.behind
        self._begin_s = begin_s(self._run, series)
        x, y = _finite(x_values(self._run, series, self._x, self._begin_s), series.array("values"))
        x, y = decimate(x, y, POINTS)
        if not (np.array_equal(x, self.x) and np.array_equal(y, self.y)):
            self.x, self.y, self.due = x, y, True


class Mean:
    """The mean of one metric over the runs of a group, or an edge of its 95 % interval. It is always sent whole."""

    def __init__(self, curves: Sequence[Curve], part: Literal["low", "high", "mean"]) -> None:
        self._curves, self._part = curves, part
        self.x, self.y = np.empty(0), np.empty(0, np.float32)
        self.due = False

    def read(self) -> None:
        """Recompute the mean from the curves of the runs, which must have been read before."""
        x, mean, half = mean_of([(curve.x, curve.y.astype(float)) for curve in self._curves if len(curve.x)])
        y = (mean + {"low": -half, "high": half, "mean": 0.0 * half}[self._part]).astype(np.float32)
        if not (np.array_equal(x, self.x) and np.array_equal(y, self.y)):
            self.x, self.y, self.due = x, y, True


class Stream:
    """The curves of runs, and the part of them that a page does not have yet.

    Args:
        runs: Runs to show.
        metrics: Metric names or raw tags, one subplot each.
        x: ``"frames"``, ``"iterations"`` or ``"wall_time"``.
        groups: Indices of the runs of each mean with a band; None shows each run.
    """

    def __init__(
        self, runs: Sequence[RunFacts], metrics: Sequence[str], x: str, groups: Sequence[Sequence[int]] | None = None
    ) -> None:
        self._runs = runs
        self._curves = [[Curve(run, metric, x) for run in runs] for metric in metrics]
        self._means = [
            Mean([of_metric[run] for run in group], part)
            for of_metric in self._curves
            for group in groups or ()
            for part in BAND
        ]
        self._grouped = groups is not None

    def changes(self) -> list[Change]:
        """Read new points and return the changes for the next message."""
        changes: list[Change] = []
        room = MOST_BYTES
        for column in range(len(self._runs)):
            for row, curves in enumerate(self._curves):
                curve = curves[column]
                new = curve.read()
                if new is None or self._grouped:
                    continue
                if (weight := POINT_BYTES * len(new[0])) > room:
                    curve.due = True
                else:
                    room -= weight
                    changes.append(Change(row * len(self._runs) + column, "add", *new))
        for mean in self._means:
            mean.read()
        for number, curve_or_mean in enumerate(self._of_page()):
            weight = POINT_BYTES * len(curve_or_mean.x)
            if curve_or_mean.due and room >= weight:
                room -= weight
                curve_or_mean.due = False
                changes.append(Change(number, "set", curve_or_mean.x, curve_or_mean.y))
        return changes

    def whole(self) -> list[Change]:
        """Return all curves in the form that a page has, or will have after the next messages."""
        return [Change(number, "set", curve.x, curve.y) for number, curve in enumerate(self._of_page())]

    @property
    def behind(self) -> bool:
        """Whether more points remain, because the time for reading or the room in the message ran out."""
        return any(curve.due for curve in self._of_page()) or any(run.metrics.behind for run in self._runs)

    def _of_page(self) -> Sequence[Curve | Mean]:
        return self._means if self._grouped else [curve for curves in self._curves for curve in curves]


def packed(changes: Sequence[Change]) -> tuple[list[tuple[int, How, int]], bytes]:
    """Return changes as a list of (number, how, points) and one buffer: all x as float64, then all y as float32."""
    heads = [(change.number, change.how, len(change.x)) for change in changes]
    x = b"".join(np.asarray(change.x, "<f8").tobytes() for change in changes)
    return heads, x + b"".join(np.asarray(change.y, "<f4").tobytes() for change in changes)


def _finite(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    finite = np.isfinite(y)
    return x[finite], y[finite].astype(np.float32)


# -- messages --------------------------------------------------------------------------------------------------------
# The fields here are the keys of the messages.


GOING: tuple[State, ...] = ("created", "queued", "starting", "running")
LOG_LINES = 20
AXIS_TITLES = {"frames": "frames", "iterations": "iteration", "wall_time": "wall time (s)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FromPage:
    """A message from a page: a request, a receipt, or the page's visibility."""

    view: str = ""
    """Id of the page."""
    ask: Literal["", "all", "plotly.js", "cancel", "axis", "metrics", "band", "close", "leave"] = ""
    """Kind of request; empty in other messages. ``"close"`` means that the page no longer shows the dashboard, and
    ``"leave"`` that the page itself is closed, or loaded again."""
    run: str = ""
    """Id of the run to cancel."""
    axis: str = ""
    """New x axis."""
    metrics: tuple[str, ...] = ()
    """Metrics to draw."""
    band: bool = False
    """Whether to draw the mean over seeds."""
    painted: int | None = None
    """Number of the :class:`Curves` message that the page has painted."""
    visible: bool | None = None
    """Whether the page is visible and not paused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DashboardRow:
    """The row of one run above the curves."""

    id: str
    name: str
    state: str
    """State, and why the run waits."""
    share: float
    """Finished fraction of the training, 0 to 1."""
    facts: str
    colour: str
    going: bool
    """Whether the run can still be cancelled."""
    log: str
    """End of the log of a failed run; empty for other runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    """New points of the curves. The message's only buffer contains them (:func:`rlnb.curves.stream.packed`)."""

    number: int
    changes: Sequence[tuple[int, How, int]]
    """For each change: number of the curve, how its points are added, number of points."""
    runs: Sequence[DashboardRow] | None
    """The row of each run; None if no row has changed."""
    kind: Literal["curves"] = "curves"


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """The chart of one metric, without its curves."""

    title: str
    help: str
    """Explanation of the metric."""
    unit: str
    range: tuple[float, float] | None
    """Limits of the y axis; None for those of the values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The look of the curves of a run, or of the mean over a group of runs, in all charts."""

    name: str
    color: str
    dash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The charts without their points."""

    panels: Sequence[Panel]
    """The charts, in the order of the curves' numbers."""
    lines: Sequence[Line]
    """The lines of each chart, in the order of the curves' numbers."""
    band: bool
    """Whether each line is a mean with a band, which has the three curves of :data:`rlnb.curves.stream.BAND`."""
    axis: str
    horizontal: str
    """Title of the x axis."""
    metrics: Sequence[str]
    """Metrics to choose from."""
    selection: Sequence[str]
    """Metrics with a chart."""
    groups: Sequence[tuple[str, Sequence[str]]]
    """Metrics without a name of rlnb in groups: the begin of their names, and the metrics."""
    kind: Literal["layout"] = "layout"


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """All curves, for pages that cannot ask for them. The message's only buffer contains the points."""

    layout: Layout
    changes: Sequence[tuple[int, How, int]]
    runs: Sequence[DashboardRow]
    kind: Literal["whole"] = "whole"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """All runs have ended."""

    bundle: Mapping[str, Json]
    """The curves as a mime bundle, for pages that were opened while the kernel was busy: other updates of the output
    do not reach them."""
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """A message without curves: the kernel is alive, or the updates have stopped."""

    kind: Literal["alive", "stopped"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotlyJs:
    """The gzipped plotly.js, in the message's only buffer."""

    kind: Literal["plotly.js"] = "plotly.js"


def row_of(run: RunFacts, name: str, number: int) -> DashboardRow:
    """Return the row of the n-th run."""
    summary = run.summary()
    return DashboardRow(
        id=run.id,
        name=name or run.title,
        state=summary.status,
        share=round(summary.progress.share, 3),
        facts=progress.facts(run, summary),
        colour=figure.colour(number),
        going=summary.state in GOING,
        log=run.logs(LOG_LINES) if summary.state in ("failed", "lost", "timeout") else "",
    )


def layout(
    runs: Sequence[RunFacts], selection: Sequence[str], axis: str, groups: Sequence[Sequence[int]] | None
) -> Layout:
    """Return the charts without points.

    Args:
        runs: The runs.
        selection: Metric names or raw tags, one chart each.
        axis: Name of the x axis.
        groups: Indices of the runs behind each mean curve; None if each run has its own curve.
    """
    names = ((*run.metrics.names, *run.metrics.tags, *run.system.tags) for run in runs)
    logged = sorted({name for of_run in names for name in of_run})
    usual = (*figure.DEFAULT_METRICS, *figure.own_names())
    metrics = dict.fromkeys([*(name for name in usual if name in logged), *logged])
    return Layout(
        panels=[_panel(metric) for metric in selection],
        lines=_lines(runs, groups),
        band=groups is not None,
        axis=axis,
        horizontal=AXIS_TITLES[axis],
        metrics=list(metrics),
        selection=selection,
        groups=[*figure.metric_groups(runs).items()],
    )


def _panel(metric: str) -> Panel:
    return Panel(
        title=figure.title(metric),
        help=figure.explanation(metric),
        unit=figure.unit(metric),
        range=figure.limits(metric),
    )


def _lines(runs: Sequence[RunFacts], groups: Sequence[Sequence[int]] | None) -> list[Line]:
    """Return a line per run, or a line per group."""
    if groups is None:
        names = figure.labels(runs)
    else:
        firsts = [runs[group[0]] for group in groups]
        names = figure.labels(firsts, without=ALIKE) if len(groups) > 1 else [firsts[0].task]
        names = [f"{name} ({counted(len(group), 'seed')})" for name, group in zip(names, groups, strict=True)]
    return [Line(name=name, color=figure.colour(number), dash=figure.dash(number)) for number, name in enumerate(names)]


def groups_of(runs: Sequence[RunFacts]) -> list[list[int]]:
    """Return groups of the indices of runs that differ only in seed, tags, and the run that they start from."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(json.dumps(shared_arguments(run.manifest), sort_keys=True), []).append(number)
    return list(groups.values())
