"""The messages between the dashboard and its page, ``dashboard.js``. The fields here are the keys of the messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rlnb.curves import figure, progress
from rlnb.curves.stream import How

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json, State

GOING: tuple[State, ...] = ("created", "queued", "starting", "running")
LOG_LINES = 20
ALIKE = ("seed", "tags")
"""Arguments that may differ between runs that are averaged into one curve."""
AXIS_TITLES = {"frames": "frames", "iterations": "iteration", "wall_time": "wall time (s)"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FromPage:
    """A message from a page: a request, a receipt, or the page's visibility."""

    view: str = ""
    """Id of the page."""
    ask: Literal["", "all", "plotly.js", "cancel", "axis", "metrics", "band", "close"] = ""
    """Kind of request; empty in other messages. ``"close"`` means that the page no longer shows the dashboard."""
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
    state: State
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
class Layout:
    """The figure without its points."""

    layout: Mapping[str, Json]
    """Plotly's layout."""
    traces: Sequence[Mapping[str, Json]]
    """Plotly's traces without points, in the order of the curves' numbers."""
    axis: str
    metrics: Sequence[str]
    """Metrics to choose from."""
    selection: Sequence[str]
    """Metrics with a subplot."""
    kind: Literal["layout"] = "layout"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotlyJs:
    """The answer to ``plotly.js``: the gzipped library, in the message's only buffer."""

    kind: Literal["plotly.js"] = "plotly.js"


def row(run: RunFacts, name: str, number: int) -> Row:
    """Return the row of the n-th run."""
    iterations, total = run.progress
    return Row(
        id=run.id,
        name=name or run.id,
        state=run.state,
        share=round(iterations / total, 3) if total else 0.0,
        facts=progress.facts(run),
        colour=figure.colour(number),
        going=run.state in GOING,
        log=run.logs(LOG_LINES) if run.state in ("failed", "lost", "timeout") else "",
    )


def layout(
    runs: Sequence[RunFacts], selection: Sequence[str], axis: str, groups: Sequence[Sequence[int]] | None
) -> Layout:
    """Return the figure without points.

    Args:
        runs: The runs.
        selection: Metric names or raw tags, one subplot each.
        axis: Name of the x axis.
        groups: Indices of the runs behind each mean curve; None if each run has its own curve.
    """
    panels: Mapping[str, Json] = json.loads(figure.panels(selection, AXIS_TITLES[axis]).to_json())["layout"]
    lines = _lines(runs, groups)
    traces: list[Mapping[str, Json]] = []
    for panel in range(len(selection)):
        for line in lines:
            legend = panel == 0 and (groups is not None or len(runs) > 1)
            traces += _edges(line, panel) if groups is not None else ()
            traces.append(figure.trace(line, panel, legend=legend))
    names = ((*run.metrics.names, *run.metrics.tags, *run.system.tags) for run in runs)
    logged = sorted({name for of_run in names for name in of_run})
    metrics = dict.fromkeys([*(name for name in figure.DEFAULT_METRICS if name in logged), *logged])
    return Layout(layout=panels, traces=traces, axis=axis, metrics=list(metrics), selection=selection)


def _lines(runs: Sequence[RunFacts], groups: Sequence[Sequence[int]] | None) -> list[figure.Line]:
    """Return a line per run, or a line per group."""
    if groups is None:
        return [figure.Line(name=name, number=number) for number, name in enumerate(figure.labels(runs))]
    firsts = [runs[group[0]] for group in groups]
    names = figure.labels(firsts, without=ALIKE) if len(groups) > 1 else [firsts[0].task]
    texts = [f"{name} ({len(group)} seeds)" for name, group in zip(names, groups, strict=True)]
    return [figure.Line(name=text, number=number) for number, text in enumerate(texts)]


def _edges(mean: figure.Line, panel: int) -> list[Mapping[str, Json]]:
    """Return the traces of the lower and the upper edge of a mean's band, as in :data:`rlnb.curves.stream.BAND`."""
    edge = figure.trace(replace(mean, width=0), panel, legend=False)
    edge |= {"hoverinfo": "skip", "hovertemplate": None}
    return [{**edge, "fill": "none"}, {**edge, "fill": "tonexty"}]


def groups_of(runs: Sequence[RunFacts]) -> list[list[int]]:
    """Return groups of the indices of runs that differ only in seed and tags."""
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        facts = {name: text for name, text in figure.facts(run).items() if name not in ALIKE}
        groups.setdefault(json.dumps(facts, sort_keys=True), []).append(number)
    return list(groups.values())
