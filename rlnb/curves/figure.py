"""Metric curves as a Plotly figure: one subplot a metric, one colour a run."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.errors import NotFoundError, unknown
from rlnb.metrics.thinning import decimate
from rlnb.records.asked import asked
from rlnb.spec import METRICS, SYSTEM

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rlnb.metrics.metrics import Metrics, Series
    from rlnb.records.facts import RunFacts

DEFAULT_METRICS = ("reward", "episode_length", "success_rate", "value_loss", "policy_loss", "fps")
X_AXES = ("frames", "iterations", "wall_time")
POINTS_PER_TRACE = 1000
"""A screen shows no more; a longer curve keeps its extremes and its shape."""
# Okabe and Ito's palette, which colour-blind people can tell apart (https://jfly.uni-koeln.de/color/);
# blue and vermilion first, yellow last because it is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

_DASHES = ("solid", "dash", "dot", "dashdot")
_UNITS = {
    "reward": "return",
    "episode_length": "env steps",
    "success_rate": "share, 0 to 1",
    "value_loss": "loss",
    "policy_loss": "loss",
    "entropy": "nats",
    "fps": "frames/s",
    "collection_s": "s",
    "learning_s": "s",
}
_SYSTEM_UNITS = {"_gib": "GiB", "_percent": "percent", "_cores": "cores"}
_TIME_UNITS = ((600.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
"""Up to how many seconds, seconds a unit, unit."""
_FEW_POINTS = 30
"""Up to this many points each is marked: a line through two of them says little."""
MOST_FACTS = 4
"""Runs that differ in more are called by their ids."""
MOST_OTHERS = 9
"""Curves of a run that logged none of the usual metrics, as a script."""
_ROW_PX, _COLUMNS = 260, 3
_MARGIN_PX = 130


def figure(runs: Sequence[RunFacts], metrics: Sequence[str] | None = None, x: str = "frames") -> go.Figure:
    """Return the curves of runs as small multiples, about 1000 points a trace.

    Args:
        runs: Runs to compare; one colour each, the legend says in what they differ.
        metrics: Metric names or raw tags; None is the usual ones that any of the runs has logged.
        x: ``"frames"`` (env transitions over all ranks), ``"iterations"`` or ``"wall_time"`` (since each
            run's start).

    Raises:
        NotFoundError: No such axis, or a metric that none of the runs knows.
    """
    check_axis(x)
    curves = {name: _curves(runs, name, x) for name in chosen(runs, metrics)}
    scale, x_title = _x_scale(x, [points for found in curves.values() for points in found])
    shown = panels(list(curves), x_title)
    names, in_legend = labels(runs), set()
    for index, found in enumerate(curves.values()):
        for number, (xs, ys) in enumerate(found):
            if not len(xs):
                continue
            trace = line(names[number], number, index, legend=len(runs) > 1 and number not in in_legend)
            trace["mode"] = "lines+markers" if len(xs) <= _FEW_POINTS else "lines"
            # Half the bytes in the notebook, and finer than a screen.
            shown.add_trace({**trace, "x": xs / scale, "y": ys.astype(np.float32)})
            in_legend.add(number)
    if not curves:
        shown.add_annotation(text="nothing logged yet", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return shown


def check_axis(x: str) -> None:
    """Make sure that there is such an x axis.

    Raises:
        NotFoundError: There is not; with those that there are.
    """
    if x not in X_AXES:
        raise unknown("x axis", x, X_AXES, has="There are")


def panels(metrics: Sequence[str], x_title: str) -> go.Figure:
    """Return a figure with an empty subplot for each metric."""
    from plotly.subplots import make_subplots

    columns = min(_COLUMNS, len(metrics) if len(metrics) != 4 else 2) or 1
    rows = math.ceil(len(metrics) / columns) or 1
    shown = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[html.escape(name.replace("_", " ") if name in METRICS else name) for name in metrics],
        horizontal_spacing=0.22 / columns,
        vertical_spacing=0.32 / rows,
    )
    for annotation, name in zip(shown.layout.annotations, metrics, strict=True):
        annotation.update(hovertext=METRICS.get(name, "a tag of the library itself"), font_size=14)
    for index, metric in enumerate(metrics):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        shown.update_xaxes(title_text=x_title, rangemode="tozero", **place)
        shown.update_yaxes(title_text=_unit(metric), **place)
        if metric == "success_rate":
            shown.update_yaxes(range=[-0.02, 1.02], **place)
    shown.update_layout(
        template="simple_white",
        height=rows * _ROW_PX + _MARGIN_PX,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom", "x": 0.0},
        uirevision="rlnb",  # keeps a person's zoom when the figure is updated
    )
    shown.update_xaxes(showgrid=True, gridcolor="#eee", title_standoff=4)
    shown.update_yaxes(showgrid=True, gridcolor="#eee", title_standoff=4)
    return shown


def _unit(metric: str) -> str:
    ends = (unit for end, unit in _SYSTEM_UNITS.items() if metric.startswith(f"{SYSTEM}/") and metric.endswith(end))
    return _UNITS.get(metric) or next(ends, "value")


def line(name: str, number: int, panel: int, *, legend: bool) -> dict[str, Any]:
    """Return a trace without points.

    Args:
        name: What the legend calls it.
        number: Which of the runs, or groups of runs; its colour.
        panel: Place of its metric among the subplots.
        legend: Whether it stands in the legend.
    """
    axis = str(panel + 1) if panel else ""
    words = html.escape(name)
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {"color": colour(number), "dash": _dash(number), "width": 1.8},
        "marker": {"size": 4},
        "name": words,
        "legendgroup": str(number),
        "showlegend": legend,
        "hovertemplate": f"%{{y:.4g}} at %{{x:,.6~g}}<extra>{words}</extra>",
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
    }


def mimebundle(shown: go.Figure, *, picture: bool) -> dict[str, Any]:
    """Return a figure as a Jupyter mime bundle: plotly JSON, and a PNG for whoever cannot draw that."""
    import base64
    import json

    from rlnb.curves.png import png

    data = json.loads(shown.to_json())
    data["config"] = {"displaylogo": False, "responsive": True}
    bundle = {"application/vnd.plotly.v1+json": data, "text/plain": "Metric curves"}
    if picture:
        bundle["image/png"] = base64.b64encode(png(shown)).decode()
    return bundle


def seen(shown: go.Figure) -> go.Figure:
    """Return the figure as one that brings its picture along where nobody can draw it: nbconvert, a batch job."""
    return _figure_with_picture()(shown)


@functools.cache
def _figure_with_picture() -> type[go.Figure]:
    """Return the class; made on first use, since plotly takes a while to import."""
    import plotly.graph_objects as go

    from rlnb.curves.png import drawable
    from rlnb.display import front_end

    class Figure(go.Figure):
        """Plotly's, with a PNG in a static notebook."""

        def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
            return mimebundle(self, picture=not front_end.is_live() and drawable(self))

        def _ipython_display_(self) -> None:
            front_end.show_bundle(self._repr_mimebundle_())

    return Figure


def colour(number: int) -> str:
    """Return the colour of the n-th run."""
    return PALETTE[number % len(PALETTE)]


def labels(runs: Sequence[RunFacts], *, without: Collection[str] = ()) -> list[str]:
    """Return one short text a run that names what differs between them, e.g. ``"rsl_rl, seed 2"``.

    Args:
        runs: The runs.
        without: What is not looked at, e.g. ``("seed",)``.
    """
    of_runs = [facts(run) for run in runs]
    keys = dict.fromkeys(key for fact in of_runs for key in fact if key not in without)
    differing = [key for key in keys if len({fact.get(key, "default") for fact in of_runs}) > 1]
    differing = [key for key in differing if key != "tags"] or differing
    if len(differing) > MOST_FACTS:
        return [run.id for run in runs]
    found = []
    for fact in of_runs:
        parts = [
            fact.get(key, "default") if key in ("task", "library") else f"{key} {fact.get(key, 'default')}"
            for key in differing
        ]
        found.append(", ".join(parts))
    return [
        text if text and found.count(text) == 1 else " ".join([text, run.id]).strip()
        for text, run in zip(found, runs, strict=True)
    ]


def facts(run: RunFacts) -> dict[str, str]:
    """Return what was asked of a run, as text."""
    return {
        name.removeprefix("agent."): f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in asked(run.manifest).items()
    }


def chosen(runs: Sequence[RunFacts], metrics: Sequence[str] | None) -> list[str]:
    """Return the metrics to draw; refuse a name that no run knows, once there is anything to know."""
    logged = [set(run.metrics.names) for run in runs]
    if metrics is None:
        there = set[str]().union(*logged)
        return [name for name in DEFAULT_METRICS if name in there] or sorted(there)[:MOST_OTHERS]
    wanted = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in wanted:
        reading = any(source(run, name).behind for run in runs)  # then it may be in what is not read yet
        if name not in METRICS and any(logged) and not reading and all(series_of(run, name) is None for run in runs):
            there = {tag for run in runs for tag in (*run.metrics.tags, *run.system.tags)}
            raise unknown("metric", name, {*METRICS, *there}, has="There are")
    return wanted


def source(run: RunFacts, name: str) -> Metrics:
    """Return where a run has a metric of that name: what its library logged, or what its nodes were used for."""
    return run.system if name.startswith(f"{SYSTEM}/") else run.metrics


def series_of(run: RunFacts, name: str) -> Series | None:
    """Return a run's metric by name; None where it knows no such metric."""
    try:
        return source(run, name)[name]
    except NotFoundError:
        return None


def _curves(runs: Sequence[RunFacts], name: str, x: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the decimated curve of each run; empty where it has logged nothing."""
    found = []
    for run in runs:
        series = series_of(run, name)
        xs, ys = (x_values(run, series, x), series.array("values")) if series else (np.empty(0), np.empty(0))
        known = np.isfinite(ys)
        found.append(decimate(xs[known], ys[known], POINTS_PER_TRACE))
    return found


def x_values(run: RunFacts, series: Series, x: str, start_s: float | None = None) -> np.ndarray:
    """Return the place of each point on an x axis, float64; wall time in seconds since ``start_s``, or the run's."""
    if x != "wall_time":
        return series.array("frames" if x == "frames" else "iterations")
    return series.array("wall_time") - (begin_s(run, series) if start_s is None else start_s)


def begin_s(run: RunFacts, series: Series) -> float:
    """Return when a run began, in seconds since the epoch; with the curve's first point where nobody noted it."""
    starts = (job.started for job in run.jobs if job.kind == "train")
    noted = next((started.time_s for started in starts if started), None)
    return noted if noted is not None else float(series.array("wall_time").min(initial=np.inf))


def _x_scale(x: str, curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, str]:
    """Return what x is divided by and the axis title with its unit."""
    if x != "wall_time":
        return 1.0, "frames" if x == "frames" else "iteration"
    longest = max((float(xs[-1]) for xs, _ in curves if len(xs)), default=0.0)
    seconds, unit = next((scale, unit) for limit, scale, unit in _TIME_UNITS if longest < limit)
    return seconds, f"wall time ({unit})"


def _dash(number: int) -> str:
    return _DASHES[number // len(PALETTE) % len(_DASHES)]
