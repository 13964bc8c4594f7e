"""Metric curves as a Plotly figure: one subplot a metric, one colour a run."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.errors import NotFoundError, unknown
from rlnb.spec import METRICS

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from rlnb.records.metrics import Series
    from rlnb.run import Run

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
_TIME_UNITS = ((600.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
"""Up to how many seconds, seconds a unit, unit."""
_FEW_POINTS = 30
"""Up to this many points each is marked: a line through two of them says little."""
_ROW_PX, _COLUMNS = 260, 3
_MARGIN_PX = 130


def figure(runs: Sequence[Run], metrics: Sequence[str] | None = None, x: str = "frames") -> go.Figure:
    """Return the curves of runs as small multiples, about 1000 points a trace.

    Args:
        runs: Runs to compare; one colour each, the legend says in what they differ.
        metrics: Metric names or raw tags; None is the usual ones that any of the runs has logged.
        x: ``"frames"`` (env transitions over all ranks), ``"iterations"`` or ``"wall_time"`` (since each
            run's start).

    Raises:
        NotFoundError: No such axis, or a metric that none of the runs knows.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    if x not in X_AXES:
        raise unknown("x axis", x, X_AXES, has="There are")
    curves = {name: _curves(runs, name, x) for name in _chosen(runs, metrics)}
    columns = min(_COLUMNS, len(curves) if len(curves) != 4 else 2) or 1
    rows = math.ceil(len(curves) / columns) or 1
    shown = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[html.escape(name.replace("_", " ") if name in METRICS else name) for name in curves],
        horizontal_spacing=0.22 / columns,
        vertical_spacing=0.32 / rows,
    )
    for annotation, name in zip(shown.layout.annotations, curves, strict=True):
        annotation.update(hovertext=METRICS.get(name, "a tag of the library itself"), font_size=14)
    scale, x_title = _x_scale(x, [points for found in curves.values() for points in found])
    names, in_legend = labels(runs), set()
    for index, (metric, found) in enumerate(curves.items()):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        for number, (xs, ys) in enumerate(found):
            if not len(xs):
                continue
            trace = go.Scatter(
                x=xs / scale,
                y=ys.astype(np.float32),  # half the bytes of every live update, and finer than a screen
                mode="lines+markers" if len(xs) <= _FEW_POINTS else "lines",
                line={"color": colour(number), "dash": _dash(number), "width": 1.8},
                marker={"size": 4},
                name=html.escape(names[number]),
                legendgroup=str(number),
                showlegend=len(runs) > 1 and number not in in_legend,
                hovertemplate=f"%{{y:.4g}} at %{{x:,.6~g}}<extra>{html.escape(names[number])}</extra>",
            )
            shown.add_trace(trace, **place)
            in_legend.add(number)
        shown.update_xaxes(title_text=x_title, rangemode="tozero", **place)
        shown.update_yaxes(title_text=_UNITS.get(metric, "value"), **place)
        if metric == "success_rate":
            shown.update_yaxes(range=[-0.02, 1.02], **place)
    if not curves:
        shown.add_annotation(text="nothing logged yet", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
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


def mimebundle(shown: go.Figure, *, picture: bool) -> dict[str, Any]:
    """Return a figure as a Jupyter mime bundle: plotly JSON, and a PNG for whoever cannot draw that."""
    import base64
    import json

    from rlnb.notebook.picture import png

    data = json.loads(shown.to_json())
    data["config"] = {"displaylogo": False, "responsive": True}
    bundle = {"application/vnd.plotly.v1+json": data, "text/plain": "Metric curves"}
    if picture:
        bundle["image/png"] = base64.b64encode(png(shown)).decode()
    return bundle


def colour(number: int) -> str:
    """Return the colour of the n-th run."""
    return PALETTE[number % len(PALETTE)]


def labels(runs: Sequence[Run]) -> list[str]:
    """Return one short text a run that names what differs between them, e.g. ``"rsl_rl, seed 2"``."""
    facts = [_facts(run) for run in runs]
    keys = dict.fromkeys(key for fact in facts for key in fact)
    differing = [key for key in keys if len({fact.get(key, "default") for fact in facts}) > 1]
    found = []
    for fact in facts:
        parts = [
            fact.get(key, "default") if key in ("task", "library") else f"{key} {fact.get(key, 'default')}"
            for key in differing
        ]
        found.append(", ".join(parts))
    return [
        text if text and found.count(text) == 1 else " ".join([text, run.id]).strip()
        for text, run in zip(found, runs, strict=True)
    ]


def _facts(run: Run) -> dict[str, str]:
    """Return what was asked of a run, as text, in the order in which a legend should name it."""
    manifest = run.manifest
    asked = {
        "task": manifest.task.id,
        "library": manifest.library,
        "seed": manifest.seed,
        "num_envs": manifest.task.num_envs,
        "max_iterations": manifest.max_iterations,
        "physics": manifest.task.physics,
        "renderer": manifest.task.renderer,
        "presets": "+".join(manifest.task.presets) or None,
        "device": manifest.resources.device,
        "ranks": manifest.resources.world_size,
        "launcher": manifest.launcher,
        "source": (manifest.task.source_sha256 or "")[:7] or None,
        **manifest.task.overrides,
        **manifest.agent,
        "tags": "+".join(manifest.tags) or None,
    }
    return {
        key: f"{value:g}" if isinstance(value, float) else str(value)
        for key, value in asked.items()
        if value is not None
    }


def _chosen(runs: Sequence[Run], metrics: Sequence[str] | None) -> list[str]:
    """Return the metrics to draw; refuse a name that no run knows, once there is anything to know."""
    logged = [set(run.metrics.names) for run in runs]
    if metrics is None:
        return [name for name in DEFAULT_METRICS if any(name in names for names in logged)]
    chosen = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in chosen:
        if name not in METRICS and any(logged) and all(series_of(run, name) is None for run in runs):
            raise unknown(
                "metric", name, {*METRICS, *(tag for run in runs for tag in run.metrics.tags)}, has="There are"
            )
    return chosen


def series_of(run: Run, name: str) -> Series | None:
    """Return a run's metric by name; None where it knows no such metric."""
    try:
        return run.metrics[name]
    except NotFoundError:
        return None


def _curves(runs: Sequence[Run], name: str, x: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the decimated curve of each run; empty where it has logged nothing."""
    found = []
    for run in runs:
        series = series_of(run, name)
        xs = np.asarray(_x_values(run, series, x) if series else [], dtype=np.float64)
        ys = np.asarray(series.values if series else [], dtype=np.float64)
        known = np.isfinite(ys)
        found.append(_decimate(xs[known], ys[known]))
    return found


def _x_values(run: Run, series: Series, x: str) -> Iterable[float]:
    if x == "frames":
        return series.frames
    if x == "iterations":
        return series.iterations
    starts = [job.started for job in run.jobs if job.kind == "train"]
    first = next((started.time_s for started in starts if started), None)
    times = series.wall_time_s
    begun = first if first is not None else min(times, default=0.0)
    return [time - begun for time in times]


def _decimate(xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(xs) <= POINTS_PER_TRACE:
        return xs, ys
    from tsdownsample import MinMaxLTTBDownsampler

    kept = MinMaxLTTBDownsampler().downsample(
        np.ascontiguousarray(xs), np.ascontiguousarray(ys), n_out=POINTS_PER_TRACE
    )
    return xs[kept], ys[kept]


def _x_scale(x: str, curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, str]:
    """Return what x is divided by and the axis title with its unit."""
    if x != "wall_time":
        return 1.0, "frames" if x == "frames" else "iteration"
    longest = max((float(xs[-1]) for xs, _ in curves if len(xs)), default=0.0)
    seconds, unit = next((scale, unit) for limit, scale, unit in _TIME_UNITS if longest < limit)
    return seconds, f"wall time ({unit})"


def _dash(number: int) -> str:
    return _DASHES[number // len(PALETTE) % len(_DASHES)]
