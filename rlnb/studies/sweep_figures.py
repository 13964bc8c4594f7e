"""Figures of a sweep: parallel coordinates, one axis for each parameter, and the importance of parameters as bars."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.display.pictures import PALETTE, red_green_blue
from rlnb.display.table import short

if TYPE_CHECKING:
    import optuna
    import plotly.graph_objects as go

WORST, MIDDLE, BEST = "#3b78d8", "#a055b8", "#d9541e"
"""Colours of trials by their value. Each has a contrast of at least 3 to a white and to a dark page."""
TICKS = 5
"""Number of ticks of a linear axis."""
_APART = 0.06
"""Least distance of two ticks, as a share of the axis."""
_AXIS_PX, _HEIGHT_PX, _BAR_PX = 170, 420, 34


@dataclass(frozen=True, kw_only=True, slots=True)
class Dimension:
    """One axis of the parallel coordinates."""

    name: str
    """Full name of the parameter, or of the trial's value."""
    places: Sequence[float]
    """Place of each trial on the axis, from 0 to 1; NaN for a trial without the parameter."""
    ticks: Sequence[tuple[float, str]]
    """Place and text of each tick."""


def parallel_coordinates(
    trials: Sequence[optuna.trial.FrozenTrial], metric: str, *, maximize: bool = True
) -> go.Figure:
    """Return a figure with a line for each complete trial: its value, then its parameters, each on an axis of its own.

    Logarithmic ranges have logarithmic axes. The best trial is drawn last, and wider.

    Args:
        trials: Complete trials.
        metric: Name of a trial's value.
        maximize: Whether a larger value is better.
    """
    import plotly.graph_objects as go

    values = [float(trial.value) for trial in trials if trial.value is not None]
    names = sorted({name for trial in trials for name in trial.params})
    dimensions = [_numeric(metric, values, min(values), max(values))] if values else []
    dimensions += [_parameter(name, trials) for name in names]
    chart = go.Figure()
    for number in sorted(range(len(values)), key=values.__getitem__, reverse=not maximize):
        chart.add_trace(_line(trials[number], number, dimensions, last=number == _best(values, maximize), up=maximize))
    for column, dimension in enumerate(dimensions):
        chart.add_traces(_axis(column, dimension))
    if not values:
        chart.add_annotation(text="no complete trial yet", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    chart.update_layout(
        template="simple_white",
        width=_AXIS_PX * (max(3, len(dimensions)) + 1),
        height=_HEIGHT_PX,
        margin={"l": 20, "r": 20, "t": 20, "b": 20},
        showlegend=False,
        xaxis={"visible": False, "range": [-0.6, max(1, len(dimensions)) - 0.4]},
        yaxis={"visible": False, "range": [-0.08, 1.35]},
    )
    return chart


def importance_bars(importances: Mapping[str, float]) -> go.Figure:
    """Return a bar for each parameter with its full name, the most important one at the top."""
    import plotly.graph_objects as go

    rising = sorted(importances.items(), key=lambda item: item[1])
    names, values = [html.escape(name) for name, _ in rising], [value for _, value in rising]
    bars = go.Bar(
        x=values, y=names, orientation="h", marker={"color": PALETTE[0]}, hovertemplate="%{y}: %{x:.3f}<extra></extra>"
    )
    chart = go.Figure(bars)
    chart.update_layout(
        template="simple_white", height=_BAR_PX * len(rising) + 110, margin={"l": 20, "r": 20, "t": 20, "b": 50}
    )
    chart.update_xaxes(title_text="importance, of 1 in all", rangemode="tozero")
    chart.update_yaxes(automargin=True)
    return chart


def _best(values: Sequence[float], maximize: bool) -> int:
    return (max if maximize else min)(range(len(values)), key=values.__getitem__)


def _line(trial: Any, number: int, dimensions: Sequence[Dimension], *, last: bool, up: bool) -> go.Scatter:
    """Return the line of a trial through all axes."""
    import plotly.graph_objects as go

    goodness = dimensions[0].places[number] if up else 1.0 - dimensions[0].places[number]
    facts = "".join(f"<br>{html.escape(f'{name} = {value}')}" for name, value in sorted(trial.params.items()))
    return go.Scatter(
        x=list(range(len(dimensions))),
        y=[dimension.places[number] for dimension in dimensions],
        mode="lines",
        line={"color": colour(goodness), "width": 3 if last else 1.6},
        hovertemplate=f"trial {trial.number}: {short(trial.value)}{facts}<extra></extra>",
    )


def _axis(column: int, dimension: Dimension) -> list[go.Scatter]:
    """Return an axis as traces: a vertical line, its ticks, and the name above it, broken at its dots."""
    import plotly.graph_objects as go

    style = {"hoverinfo": "skip", "showlegend": False}
    places, texts = [place for place, _ in dimension.ticks], [html.escape(text) for _, text in dimension.ticks]
    name = html.escape(dimension.name).replace(".", ".<br>")
    return [
        go.Scatter(x=[column, column], y=[0, 1], mode="lines", line={"color": "#888888", "width": 1}, **style),
        go.Scatter(
            x=[column - 0.03] * len(texts), y=places, text=texts, mode="text", textposition="middle left", **style
        ),
        go.Scatter(x=[column], y=[1.05], text=[f"<b>{name}</b>"], mode="text", textposition="top center", **style),
    ]


def _parameter(name: str, trials: Sequence[optuna.trial.FrozenTrial]) -> Dimension:
    """Return the axis of a parameter, over the whole range that the sweep searches."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    spaces = [trial.distributions[name] for trial in trials if name in trial.params]
    values = [trial.params.get(name) for trial in trials]
    ranges = [space for space in spaces if isinstance(space, FloatDistribution | IntDistribution)]
    if ranges:
        numbers = [math.nan if value is None else float(value) for value in values]
        low, high = min(float(space.low) for space in ranges), max(float(space.high) for space in ranges)
        whole = all(isinstance(space, IntDistribution) for space in ranges)
        return _numeric(name, numbers, low, high, log=any(space.log for space in ranges), whole=whole)
    choices = [space.choices for space in spaces if isinstance(space, CategoricalDistribution)]
    texts = list(dict.fromkeys(str(choice) for of_trial in choices for choice in of_trial))
    places = {text: (index + 0.5) / len(texts) for index, text in enumerate(texts)}
    of_trials = [
        places[str(value)] if name in trial.params else math.nan for value, trial in zip(values, trials, strict=True)
    ]
    return Dimension(name=name, places=of_trials, ticks=[(place, text) for text, place in places.items()])


def _numeric(
    name: str, values: Sequence[float], low: float, high: float, *, log: bool = False, whole: bool = False
) -> Dimension:
    """Return a linear or logarithmic axis from ``low`` to ``high``."""
    scale = math.log if log else float
    width = scale(high) - scale(low)

    def place(value: float) -> float:
        return (scale(value) - scale(low)) / width if width else 0.5

    ticks: dict[float, str] = {}
    for value in _ticks(low, high, log=log, whole=whole):
        if all(abs(place(value) - other) >= _APART for other in ticks):
            ticks[place(value)] = f"{value:,.0f}" if whole else short(value)
    return Dimension(
        name=name,
        places=[place(value) if math.isfinite(value) else math.nan for value in values],
        ticks=list(ticks.items()),
    )


def _ticks(low: float, high: float, *, log: bool, whole: bool) -> list[float]:
    """Return the values of ticks: both ends first, then the powers of ten or equal steps between them."""
    if low == high:
        return [low]
    if log:
        exponents = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        inner = [10.0**exponent for exponent in exponents]
        inner = inner if len(inner) > 1 else [*inner, *map(float, np.geomspace(low, high, TICKS)[1:-1])]
    else:
        inner = [float(value) for value in np.linspace(low, high, TICKS)[1:-1]]
    return [low, high, *(float(round(value)) if whole else value for value in inner)]


def colour(goodness: float) -> str:
    """Return the colour of a trial.

    Args:
        goodness: 0 for the worst trial, 1 for the best.
    """
    ends = (WORST, MIDDLE) if goodness < 0.5 else (MIDDLE, BEST)
    share = 2 * goodness if goodness < 0.5 else 2 * goodness - 1
    mix = [round((1 - share) * a + share * b) for a, b in zip(*map(red_green_blue, ends), strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mix)
