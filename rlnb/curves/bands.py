"""Groups of runs as mean curves with bands: one subplot per metric, one colour per group."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlnb.curves.figure import colour, series_of
from rlnb.display.pictures import red_green_blue
from rlnb.display.table import counted

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rlnb.records.facts import RunFacts

GRID = 200
"""Number of points of a mean curve."""
CONFIDENCE = 0.95


def figure(groups: Mapping[str, Sequence[RunFacts]], metrics: Sequence[str]) -> go.Figure:
    """Return a figure with the mean of each metric over the runs of each group, against frames.

    The band is the 95 % interval of the mean (Student's t) where all runs of the group have data. A group of one run
    has no band.

    Args:
        groups: Runs by name of their group.
        metrics: Metric names or raw tags.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    titles = [html.escape(name.replace("_", " ")) for name in metrics]
    chart = make_subplots(rows=1, cols=len(metrics), subplot_titles=titles)
    for column, metric in enumerate(metrics, 1):
        for number, (name, runs) in enumerate(groups.items()):
            frames, mean, half = mean_curve(runs, metric)
            if not len(frames):
                continue
            style = {"legendgroup": name, "hoverinfo": "skip", "showlegend": False, "mode": "lines"}
            edge = {"width": 0, "color": colour(number)}
            if half.any():
                chart.add_trace(go.Scatter(x=frames, y=mean + half, line=edge, **style), row=1, col=column)
                chart.add_trace(
                    go.Scatter(x=frames, y=mean - half, line=edge, fill="tonexty", fillcolor=_faint(number), **style),
                    row=1,
                    col=column,
                )
            curve = go.Scatter(
                x=frames,
                y=mean,
                mode="lines",
                line={"color": colour(number), "width": 2},
                name=html.escape(f"{name} ({counted(len(runs), 'seed')})"),
                legendgroup=name,
                showlegend=column == 1,
            )
            chart.add_trace(curve, row=1, col=column)
        chart.update_xaxes(title_text="frames", rangemode="tozero", row=1, col=column)
        if metric == "success_rate":
            chart.update_yaxes(range=[-0.02, 1.02], row=1, col=column)
    chart.update_layout(
        template="simple_white", height=360, margin={"l": 60, "r": 20, "t": 40, "b": 50}, legend={"orientation": "h"}
    )
    return chart


def _faint(number: int) -> str:
    red, green, blue = red_green_blue(colour(number))
    return f"rgba({red}, {green}, {blue}, 0.2)"


def mean_curve(runs: Sequence[RunFacts], metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frames, the mean and the half-width of its 95 % interval, each of shape (GRID,), or empty without data."""
    logged = [series for run in runs if (series := series_of(run, metric)) is not None]
    curves = [(series.array("frames"), series.array("values")) for series in logged]
    return mean_of([(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curves if np.isfinite(y).any()])


def mean_of(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, the mean and the half-width of its 95 % interval where all curves have data.

    Args:
        curves: Pairs of x and y, each of shape (n,) with n at least 1; x is ascending.

    Returns:
        Three arrays of shape (GRID,), or three empty arrays without curves.
    """
    from scipy.stats import t

    if not curves:
        return np.array([]), np.array([]), np.array([])
    grid = np.linspace(max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves), GRID)
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    if len(curves) < 2:
        return grid, values[0], np.zeros(GRID)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(curves))
    _, errors = t.interval(CONFIDENCE, len(curves) - 1)  # half-width in standard errors
    return grid, values.mean(axis=0), float(errors) * error
