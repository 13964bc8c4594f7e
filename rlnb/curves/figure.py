"""Metric curves as a Plotly figure: one subplot per metric, one colour per run."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlnb.display.pictures import PALETTE, red_green_blue
from rlnb.display.table import counted
from rlnb.errors import NotFoundError, refuse_other_than_text, unknown
from rlnb.hooks import plugins
from rlnb.metrics.folders import split
from rlnb.metrics.metrics import grouped
from rlnb.metrics.series import decimate
from rlnb.records.arguments import arguments_of
from rlnb.spec import METRICS, SYSTEM

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rlnb.metrics.metrics import Metrics
    from rlnb.metrics.series import Series
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json

DEFAULT_METRICS = ("reward", "episode_length", "success_rate", "value_loss", "critic_loss", "policy_loss", "fps")
X_AXES = ("frames", "iterations", "wall_time")
POINTS_PER_TRACE = 1000
"""Most points of a trace, because a screen shows no more. A decimated curve keeps its extremes and its shape."""

_DASHES = ("solid", "dash", "dot", "dashdot")
_UNIT_IN_MEANING = re.compile(r", in ([\w/ %-]+)$")
"""End of a metric's meaning that names its unit, as in ``"policy entropy, in nats"``."""
_UNITS = {
    "reward": "return",
    "success_rate": "share, 0 to 1",
    "value_loss": "loss",
    "policy_loss": "loss",
    "critic_loss": "loss",
    "buffer_size": "transitions",
    "fps": "frames/s",
    "collection_s": "s",
    "learning_s": "s",
}
_SYSTEM_UNITS = {"_gib": "GiB", "_percent": "percent", "_cores": "cores"}
_TIME_UNITS = ((600.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
"""Units of a time axis: upper limit of its length in seconds, seconds per unit, unit."""
_FEW_POINTS = 30
"""Most points of a curve whose points are marked."""
MOST_FACTS = 4
"""Most arguments in a run's label. Runs that differ in more arguments are labelled by their ids."""
MOST_OF_TASK = 6
"""Most curves of metrics that the task logs itself."""
MOST_OTHERS = 9
"""Most curves of a run that logged none of the usual metrics, such as a script's."""
_SHARE_RANGE = (-0.02, 1.02)
"""Limits of the y axis of a share between 0 and 1."""
_ROW_PX, _COLUMNS = 260, 3
_MARGIN_PX = 130


def figure(runs: Sequence[RunFacts], metrics: Sequence[str] | None = None, x: str = "frames") -> go.Figure:
    """Return the curves of runs as small multiples, with about 1000 points per trace.

    Args:
        runs: Runs to compare. Each has its own colour, and the legend names their differences.
        metrics: Metric names, raw tags, or groups of tags such as ``"Episode_Reward"``; None is the usual metrics that
            any of the runs has logged.
        x: ``"frames"`` (env transitions over all ranks), ``"iterations"`` or ``"wall_time"`` (since each
            run's start).

    Raises:
        NotFoundError: The axis does not exist, or none of the runs has a metric.
    """
    check_axis(x)
    curves = {name: _curves(runs, name, x) for name in select(runs, metrics)}
    if metrics is None:  # a usual metric may have only values that are not finite
        curves = {name: of_runs for name, of_runs in curves.items() if any(len(xs) for xs, _ in of_runs)}
    scale, x_title = _x_scale(x, [points for of_runs in curves.values() for points in of_runs])
    chart = panels(list(curves), x_title)
    names, in_legend = labels(runs), set()
    for panel, of_runs in enumerate(curves.values()):
        for number, (xs, ys) in enumerate(of_runs):
            if not len(xs):
                continue
            line = _trace(names[number], number, panel, legend=len(runs) > 1 and number not in in_legend)
            mode = "lines+markers" if len(xs) <= _FEW_POINTS else "lines"
            # float32 halves the bytes in the notebook and is more precise than a screen.
            chart.add_trace({**line, "mode": mode, "x": xs / scale, "y": ys.astype(np.float32)})
            in_legend.add(number)
    if not curves:
        why = next(filter(None, (run.metrics.unread for run in runs)), "nothing logged yet")
        chart.add_annotation(text=html.escape(why), showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return chart


def check_axis(x: str) -> None:
    """Check the name of an x axis.

    Raises:
        NotFoundError: The axis does not exist. The error lists the axes.
    """
    if x not in X_AXES:
        raise unknown("x axis", x, X_AXES, has="There are")


def panels(metrics: Sequence[str], x_title: str) -> go.Figure:
    """Return a figure with an empty subplot for each metric."""
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, len(metrics) if len(metrics) != 4 else 2) or 1
    rows = math.ceil(len(metrics) / columns) or 1
    chart = make_subplots(
        rows=rows,
        cols=columns,
        specs=[
            [{} if row * columns + column < max(1, len(metrics)) else None for column in range(columns)]
            for row in range(rows)
        ],
        subplot_titles=[html.escape(title(name)) for name in metrics],
        horizontal_spacing=0.22 / columns,
        vertical_spacing=0.32 / rows,
    )
    for annotation, name in zip(chart.layout.annotations, metrics, strict=True):
        annotation.update(hovertext=html.escape(explanation(name)), font_size=14)
    for index, metric in enumerate(metrics):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        chart.update_xaxes(title_text=x_title, rangemode="tozero", **place)
        chart.update_yaxes(title_text=unit(metric), **place)
        if (of_metric := limits(metric)) is not None:
            chart.update_yaxes(range=of_metric, **place)
    chart.update_layout(
        template="simple_white",
        height=rows * _ROW_PX + _MARGIN_PX,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0.0},
    )
    chart.update_xaxes(showgrid=True, gridcolor="#eee", title_standoff=4)
    chart.update_yaxes(showgrid=True, gridcolor="#eee", title_standoff=4)
    return chart


def title(metric: str) -> str:
    """Return the title of a metric's chart."""
    if not metric:
        return "(no name)"  # Plotly leaves an empty title out
    base, folder = split(metric)
    return base.replace("_", " ") + folder if base in plugins.metrics() else metric


def explanation(metric: str) -> str:
    """Return what a metric means."""
    return plugins.metrics().get(split(metric)[0], "a raw tag of the library")


def own_names() -> list[str]:
    """Return the metric names of the installed libraries' own, sorted."""
    return sorted(plugins.metrics().keys() - METRICS.keys())


def limits(metric: str) -> tuple[float, float] | None:
    """Return the limits of a metric's y axis; None for those of the values."""
    return _SHARE_RANGE if split(metric)[0] == "success_rate" else None


def unit(metric: str) -> str:
    """Return the unit of a metric, or ``"value"``."""
    ends = (unit for end, unit in _SYSTEM_UNITS.items() if metric.startswith(f"{SYSTEM}/") and metric.endswith(end))
    named = _UNIT_IN_MEANING.search(explanation(metric))
    return _UNITS.get(split(metric)[0]) or (named.group(1) if named else next(ends, "value"))


def _trace(name: str, number: int, panel: int, *, legend: bool) -> dict[str, Json]:
    """Return the trace of the n-th run in the subplot of a metric, without points."""
    axis = str(panel + 1) if panel else ""
    text = html.escape(name)
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {"color": colour(number), "dash": dash(number), "width": 1.8},
        "marker": {"size": 4},
        "name": text,
        "legendgroup": str(number),
        "showlegend": legend,
        "hovertemplate": f"%{{y:.4g}} at %{{x:,.6~g}}<extra>{text}</extra>",
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
    }


def colour(number: int) -> str:
    """Return the colour of the n-th run."""
    return PALETTE[number % len(PALETTE)]


def labels(runs: Sequence[RunFacts], *, without: Collection[str] = ()) -> list[str]:
    """Return a short label for each run: its name, or its differences from the others, e.g. ``"rsl_rl, seed 2"``.

    Args:
        runs: The runs.
        without: Arguments to ignore, e.g. ``("seed",)``.
    """
    of_runs = [facts(run) for run in runs]
    keys = dict.fromkeys(key for fact in of_runs for key in fact if key not in without)
    differing = [key for key in keys if len({fact.get(key, "default") for fact in of_runs}) > 1]
    differing = [key for key in differing if key != "tags"] or differing
    if len(differing) > MOST_FACTS:
        return _named(runs, [run.id for run in runs])
    texts = []
    for fact in of_runs:
        parts = [
            fact.get(key, "default") if key in ("task", "library") else f"{key} {fact.get(key, 'default')}"
            for key in differing
        ]
        texts.append(", ".join(parts))
    return _named(
        runs,
        [
            text if text and texts.count(text) == 1 else " ".join([text, run.id]).strip()
            for text, run in zip(texts, runs, strict=True)
        ],
    )


def _named(runs: Sequence[RunFacts], texts: Sequence[str]) -> list[str]:
    """Return the name of each run that has one, with its text if others have the same name; otherwise its text."""
    names = [run.name for run in runs]
    return [
        text if not name else name if names.count(name) == 1 else f"{name} ({text})"
        for name, text in zip(names, texts, strict=True)
    ]


def facts(run: RunFacts) -> dict[str, str]:
    """Return the arguments of a run as text."""
    return {
        name.removeprefix("agent."): f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in arguments_of(run.manifest).items()
    }


def select(runs: Sequence[RunFacts], metrics: Sequence[str] | None) -> list[str]:
    """Return the metrics to draw. Refuse a name that no run has, unless nothing has been logged yet."""
    if isinstance(metrics, bytes) or not isinstance(metrics, Sequence | None):
        raise NotFoundError(f'metrics={metrics!r} is not a list of names. Use metrics=["reward"].')
    logged = [set(run.metrics.names) for run in runs]
    if metrics is None:
        every = set[str]().union(*logged)
        of_task = sorted(set[str]().union(*(run.metrics.of_task for run in runs)))
        usual = [
            name for first in (*DEFAULT_METRICS, *own_names()) for name in sorted(every) if split(name)[0] == first
        ]
        return [*usual, *of_task[:MOST_OF_TASK]] if usual else sorted(every)[:MOST_OTHERS]
    names, meanings = [metrics] if isinstance(metrics, str) else list(metrics), plugins.metrics()
    for name in names:
        refuse_other_than_text("metric", name)
    names = [*dict.fromkeys(one for name in names for one in _of_group(runs, name) or [name])]
    for name in names:
        reading = any(source(run, name).behind for run in runs)  # the unread part of the log may have the metric
        if name not in meanings and any(logged) and not reading and all(series_of(run, name) is None for run in runs):
            tags = {tag for run in runs for tag in (*run.metrics.tags, *run.system.tags)}
            raise unknown("metric", name, {*meanings, *tags}, has="There are")
    return names


def metric_groups(runs: Sequence[RunFacts]) -> dict[str, list[str]]:
    """Return the metrics of runs that have no name of rlnb, by the begin of their names."""
    return grouped({tag for run in runs for tag in run.metrics.unnamed})


def _of_group(runs: Sequence[RunFacts], name: str) -> list[str]:
    """Return the metrics of a group, such as ``"Episode_Reward"``; none if the name is not that of a group."""
    if any(name in source(run, name) for run in runs):
        return []
    return metric_groups(runs).get(name.removesuffix("*").removesuffix("/"), [])


def source(run: RunFacts, name: str) -> Metrics:
    """Return the metrics of a run that contain a name: those of its nodes (``system/...``), or those of its library."""
    return run.system if name.startswith(f"{SYSTEM}/") else run.metrics


def series_of(run: RunFacts, name: str) -> Series | None:
    """Return a run's metric by name; None if the run does not have it."""
    try:
        return source(run, name)[name]
    except NotFoundError:
        return None


def _curves(runs: Sequence[RunFacts], name: str, x: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the decimated curve of each run; empty for a run that has logged nothing."""
    curves = []
    for run in runs:
        series = series_of(run, name)
        xs, ys = (x_values(run, series, x), series.array("values")) if series else (np.empty(0), np.empty(0))
        finite = np.isfinite(ys)
        curves.append(decimate(xs[finite], ys[finite], POINTS_PER_TRACE))
    return curves


def x_values(run: RunFacts, series: Series, x: str, start_s: float | None = None) -> np.ndarray:
    """Return the x value of each point, float64. Wall time is in seconds since ``start_s`` or the run's start."""
    if x != "wall_time":
        return series.array("frames" if x == "frames" else "iterations")
    return series.array("wall_time") - (begin_s(run, series) if start_s is None else start_s)


def begin_s(run: RunFacts, series: Series) -> float:
    """Return the start of a run in seconds since the epoch, or the curve's first point if the start is not recorded."""
    starts = (job.started for job in run.jobs if job.kind == "train")
    start_s = next((started.time_s for started in starts if started), None)
    return start_s if start_s is not None else float(series.array("wall_time").min(initial=np.inf))


def _x_scale(x: str, curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, str]:
    """Return the divisor of the x values, and the axis title with the unit."""
    if x != "wall_time":
        return 1.0, "frames" if x == "frames" else "iteration"
    longest = max((float(xs[-1]) for xs, _ in curves if len(xs)), default=0.0)
    seconds, unit = next((scale, unit) for limit, scale, unit in _TIME_UNITS if longest < limit)
    return seconds, f"wall time ({unit})"


def dash(number: int) -> str:
    """Return Plotly's name of the dashes of the n-th run."""
    return _DASHES[number // len(PALETTE) % len(_DASHES)]


# -- bands of groups -------------------------------------------------------------------------------------------------


MEAN_POINTS = 200
"""Number of points of a mean curve."""
CONFIDENCE = 0.95


def bands_figure(groups: Mapping[str, Sequence[RunFacts]], metrics: Sequence[str]) -> go.Figure:
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
    """Return frames, the mean and the half-width of its 95 % interval, all of shape (MEAN_POINTS,), or empty."""
    logged = [series for run in runs if (series := series_of(run, metric)) is not None]
    curves = [(series.array("frames"), series.array("values")) for series in logged]
    return mean_of([(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curves if np.isfinite(y).any()])


def mean_of(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, the mean and the half-width of its 95 % interval where all curves have data.

    Args:
        curves: Pairs of x and y, each of shape (n,) with n at least 1; x is ascending.

    Returns:
        Three arrays of shape (MEAN_POINTS,), or three empty arrays without curves.
    """
    from scipy.stats import t

    if not curves:
        return np.array([]), np.array([]), np.array([])
    grid = np.linspace(max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves), MEAN_POINTS)
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    if len(curves) < 2:
        return grid, values[0], np.zeros(MEAN_POINTS)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(curves))
    _, errors = t.interval(CONFIDENCE, len(curves) - 1)  # half-width in standard errors
    return grid, values.mean(axis=0), float(errors) * error
