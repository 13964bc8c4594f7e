"""A Plotly figure as a PNG, drawn with matplotlib: a fresh machine has no browser for kaleido."""

from __future__ import annotations

import html
import io
import re
import statistics
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_DPI = 110
_BAND_ALPHA = 0.2
_BAR_COLOUR = "#0072B2"
_LEGEND_CHARACTERS = 120
"""What fits on a line of the legend below two columns of subplots."""


def drawable(shown: go.Figure) -> bool:
    """Return whether :func:`png` can draw a figure: lines, points and bars."""
    return all(trace.type in ("scatter", "scattergl", "bar") for trace in shown.data)


def png(shown: go.Figure) -> bytes:
    """Return a figure of lines, points and bars as a PNG with its own subplots, titles, colours and legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import EngFormatter

    layout = shown.layout
    pairs = [name.removeprefix("xaxis") for name in layout if name.startswith("xaxis")] or [""]
    lefts = sorted({_start(layout[f"xaxis{n}"]) for n in pairs})
    bottoms = sorted({_start(layout[f"yaxis{n}"]) for n in pairs}, reverse=True)
    drawn = Figure(figsize=(3.9 * len(lefts) + 0.4, 2.5 * len(bottoms) + 0.4), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.add_gridspec(len(bottoms), len(lefts))
    titles = {_spot(note.x, note.y): note.text for note in layout.annotations}
    legend = {}
    for n in pairs:  # in no order: plotly's layout is a set of names
        xaxis, yaxis = layout[f"xaxis{n}"], layout[f"yaxis{n}"]
        axes = drawn.add_subplot(grid[bottoms.index(_start(yaxis)), lefts.index(_start(xaxis))])
        # plotly's subplot titles are annotations, to be told by where they stand: above the middle of their axes.
        title = titles.pop(_spot(statistics.fmean(xaxis.domain or (0, 1)), (yaxis.domain or (0, 1))[1]), "")
        axes.set_title(_plain(title), fontsize=10, parse_math=False)
        before: Any = ()
        for trace in shown.data:
            if (trace.yaxis or "y") != f"y{n}":
                continue
            if trace.type == "bar":
                lying = trace.orientation == "h"
                names, lengths = (trace.y, trace.x) if lying else (trace.x, trace.y)
                places = range(len(lengths)) if names is None else list(names)
                (axes.barh if lying else axes.bar)(places, list(lengths), color=_BAR_COLOUR)
                continue
            style: dict[str, Any] = {
                "color": _colour(trace.line.color),
                "linestyle": _DASHES[trace.line.dash or "solid"],
                "linewidth": 1.4,
            }
            marks: dict[str, Any] = {"marker": ".", "markersize": 4} if "markers" in (trace.mode or "") else {}
            x = range(len(trace.y)) if trace.x is None else trace.x
            if trace.fill == "tonexty":  # a band down to the trace before it
                axes.fill_between(x, trace.y, before, color=style["color"], alpha=_BAND_ALPHA, linewidth=0)
            before = trace.y
            if trace.line.width != 0:
                axes.plot(x, trace.y, **style, **marks)
            if trace.showlegend:
                legend[_plain(trace.name)] = Line2D([], [], **style)
        axes.set_xlabel(_plain(xaxis.title.text), fontsize=8)
        axes.set_ylabel(_plain(yaxis.title.text), fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(color="#eeeeee")
        axes.spines[["top", "right"]].set_visible(False)
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            if max(abs(limit) for limit in limits) >= 1000.0:
                axis.set_major_formatter(EngFormatter(sep=""))  # 20k, as plotly writes it
        if yaxis.range:
            axes.set_ylim(*yaxis.range)
    for (left, top), text in titles.items():
        drawn.text(left, top, _plain(text), ha="center", va="center")
    if legend:
        # A leading space: matplotlib leaves out labels that start with an underscore.
        texts = [textwrap.shorten(name, _LEGEND_CHARACTERS, placeholder=" ...") for name in legend]
        texts = [f" {text}" for text in texts]
        columns = max(1, min(3, int(_LEGEND_CHARACTERS * len(lefts) / 2 / max(map(len, texts)))))
        lines = list(legend.values())
        box = drawn.legend(lines, texts, loc="outside lower left", ncols=columns, fontsize=8, frameon=False)
        for text in box.get_texts():
            text.set_parse_math(False)
    with io.BytesIO() as file:
        drawn.savefig(file, format="png", facecolor="white")
        return file.getvalue()


def _colour(words: str | None) -> Any:
    """Return a colour as matplotlib writes it: plotly's ``rgb(1, 2, 3)`` counts to 255."""
    if words is None or not words.startswith("rgb"):
        return words
    red, green, blue, *alpha = (float(number) for number in re.findall(r"[\d.]+", words))
    return (red / 255, green / 255, blue / 255, *alpha)


def _start(axis: Any) -> float:
    return round(axis.domain[0] if axis.domain else 0.0, 6)


def _spot(left: float, top: float) -> tuple[float, float]:
    return round(left, 4), round(top, 4)


def _plain(text: str | None) -> str:
    return html.unescape(text or "")
