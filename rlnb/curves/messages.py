"""The messages between the dashboard and its page, ``feed.js`` and ``dashboard.js``.

The fields here are the keys of the messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlnb.curves import figure, progress
from rlnb.curves.stream import How
from rlnb.display.table import counted
from rlnb.records.asked import ALIKE, alike

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json, State

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
class Row:
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
    runs: Sequence[Row] | None
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
    kind: Literal["layout"] = "layout"


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """All curves, for pages that cannot ask for them. The message's only buffer contains the points."""

    layout: Layout
    changes: Sequence[tuple[int, How, int]]
    runs: Sequence[Row]
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


def row(run: RunFacts, name: str, number: int) -> Row:
    """Return the row of the n-th run."""
    iterations, total = run.progress
    return Row(
        id=run.id,
        name=name or run.id,
        state=progress.standing(run),
        share=round(iterations / total, 3) if total else 0.0,
        facts=progress.facts(run),
        colour=figure.colour(number),
        going=run.state in GOING,
        log=run.logs(LOG_LINES) if run.state in ("failed", "lost", "timeout") else "",
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
        groups.setdefault(json.dumps(alike(run.manifest), sort_keys=True), []).append(number)
    return list(groups.values())
