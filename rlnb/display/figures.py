"""Plotly figures in a cell, and as PNGs. matplotlib draws these, because kaleido needs a browser."""

from __future__ import annotations

import functools
import html
import io
import re
import statistics
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from rlnb.spec import Json

_DASHES: Mapping[str, Literal["-", "--", ":", "-."]] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_DPI = 110
_PX_PER_INCH = 96
"""Pixels of a browser per inch."""
_HORIZONTAL: Mapping[str, Literal["left", "right", "center"]] = {"left": "right", "right": "left"}
_VERTICAL: Mapping[str, Literal["bottom", "top", "center"]] = {"top": "bottom", "bottom": "top"}
"""matplotlib's name of the side of a text that lies at its point, by plotly's name of the side of the point."""
_BAND_ALPHA = 0.2
_LINE_WIDTH = 1.4
_BAR_WIDTH = 6.0
"""Width of a bar's line in the legend."""
_LEGEND_CHARACTERS = 120
"""Number of characters on a line of the legend below two columns of subplots."""
_ENGINEERING_FROM = 1000.0
"""Axis limit from which on ticks are written as 20k instead of 20000, as in plotly."""

Spot = tuple[float, float]
"""A point of the figure, in fractions of its width and height."""


def drawable(chart: go.Figure) -> bool:
    """Return whether :func:`png` can draw a figure: it draws lines, points, texts and bars."""
    return all(trace.type in ("scatter", "scattergl", "bar") for trace in chart.data)


def png(chart: go.Figure) -> bytes:
    """Return a figure of lines, points, texts and bars as a PNG with the same subplots, titles, colours and legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    subplots = _subplots(chart)
    columns = sorted({subplot.column for subplot in subplots})
    rows = sorted({subplot.row for subplot in subplots}, reverse=True)
    size = (3.9 * len(columns) + 0.4, 2.5 * len(rows) + 0.4)
    if chart.layout.width and chart.layout.height:
        size = (chart.layout.width / _PX_PER_INCH, chart.layout.height / _PX_PER_INCH)
    picture = Figure(figsize=size, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(picture)
    grid = picture.add_gridspec(len(rows), len(columns))
    notes = {_spot(note.x, note.y): note.text for note in chart.layout.annotations}
    legend: dict[str, Line2D] = {}
    for subplot in subplots:
        axes = picture.add_subplot(grid[rows.index(subplot.row), columns.index(subplot.column)])
        # plotly's subplot titles are annotations above the middle of their axes.
        axes.set_title(_plain(notes.pop(subplot.title_spot, "")), fontsize=10, parse_math=False)
        legend |= _draw_traces(axes, chart, subplot)
        _dress(axes, subplot)
    for (x, y), text in notes.items():
        picture.text(x, y, _plain(text), ha="center", va="center")
    if legend:
        _add_legend(picture, legend, len(columns))
    with io.BytesIO() as file:
        picture.savefig(file, format="png", facecolor="white")
        return file.getvalue()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Subplot:
    """A pair of plotly's axes."""

    number: str
    """Number after plotly's ``xaxis`` and ``yaxis``; empty for the first pair."""
    x: Any
    """plotly's ``layout.XAxis``."""
    y: Any
    """plotly's ``layout.YAxis``."""

    @property
    def column(self) -> float:
        return _start(self.x)

    @property
    def row(self) -> float:
        return _start(self.y)

    @property
    def title_spot(self) -> Spot:
        return _spot(statistics.fmean(self.x.domain or (0, 1)), (self.y.domain or (0, 1))[1])


def _subplots(chart: go.Figure) -> list[_Subplot]:
    """Return the subplots in arbitrary order."""
    layout = chart.layout
    numbers = [name.removeprefix("xaxis") for name in layout if name.startswith("xaxis")] or [""]
    return [_Subplot(number=number, x=layout[f"xaxis{number}"], y=layout[f"yaxis{number}"]) for number in numbers]


def _draw_traces(axes: Axes, chart: go.Figure, subplot: _Subplot) -> dict[str, Line2D]:
    """Draw the traces of a subplot, and return the lines for the legend by name."""
    from matplotlib.lines import Line2D

    legend = {}
    below: Any = ()
    for trace in chart.data:
        if (trace.yaxis or "y") != f"y{subplot.number}":
            continue
        if trace.type == "bar":
            _draw_bars(axes, trace)
            if trace.showlegend:
                legend[_plain(trace.name)] = Line2D([], [], color=_bar_colour(trace), linewidth=_BAR_WIDTH)
            continue
        if trace.mode == "text":
            _draw_texts(axes, trace)
            continue
        _draw_line(axes, trace, below)
        below = trace.y
        if trace.showlegend:
            colour, dash = _colour(trace.line.color), _DASHES[trace.line.dash or "solid"]
            legend[_plain(trace.name)] = Line2D([], [], color=colour, linestyle=dash, linewidth=_LINE_WIDTH)
    return legend


def _draw_bars(axes: Axes, trace: go.Bar) -> None:
    """Draw bars from their base, as stacked ones have it."""
    horizontal = trace.orientation == "h"
    names, lengths = (trace.y, trace.x) if horizontal else (trace.x, trace.y)
    places = range(len(lengths)) if names is None else list(names)
    base: Any = 0.0 if trace.base is None else list(trace.base)
    draw, below = (axes.barh, "left") if horizontal else (axes.bar, "bottom")
    draw(places, list(lengths), color=_bar_colour(trace), **{below: base})


def _bar_colour(trace: go.Bar) -> Any:
    from rlnb.display.pictures import PALETTE

    return _colour(trace.marker.color) if isinstance(trace.marker.color, str) else PALETTE[0]


def _draw_texts(axes: Axes, trace: go.Scatter) -> None:
    vertical, _, horizontal = (trace.textposition or "middle center").partition(" ")
    ha, va = _HORIZONTAL.get(horizontal, "center"), _VERTICAL.get(vertical, "center")
    for x, y, text in zip(trace.x, trace.y, trace.text, strict=True):
        bold = "bold" if text.startswith("<b>") else "normal"
        axes.text(x, y, _plain(text), fontsize=8, fontweight=bold, ha=ha, va=va, parse_math=False)


def _draw_line(axes: Axes, trace: go.Scatter, below: Any) -> None:
    """Draw a curve, and the band down to the previous curve if the trace has a fill."""
    colour, dash = _colour(trace.line.color), _DASHES[trace.line.dash or "solid"]
    marker, size = (".", 4.0) if "markers" in (trace.mode or "") else ("", None)
    x = range(len(trace.y)) if trace.x is None else trace.x
    if trace.fill == "tonexty":
        axes.fill_between(x, trace.y, below, color=colour, alpha=_BAND_ALPHA, linewidth=0)
    if trace.line.width != 0:
        axes.plot(x, trace.y, color=colour, linestyle=dash, linewidth=_LINE_WIDTH, marker=marker, markersize=size)


def _dress(axes: Axes, subplot: _Subplot) -> None:
    """Set the titles and ticks of the axes, and the grid."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel(_plain(subplot.x.title.text), fontsize=8)
    axes.set_ylabel(_plain(subplot.y.title.text), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)  # the grid behind bars
    axes.spines[["top", "right"]].set_visible(False)
    if subplot.x.visible is False and subplot.y.visible is False:
        axes.set_axis_off()
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if max(abs(limit) for limit in limits) >= _ENGINEERING_FROM:
            axis.set_major_formatter(EngFormatter(sep=""))
    if subplot.x.range:
        axes.set_xlim(*subplot.x.range)
    if subplot.y.autorange == "reversed":
        axes.invert_yaxis()
    if subplot.y.range:
        axes.set_ylim(*subplot.y.range)


def _add_legend(picture: Figure, legend: Mapping[str, Line2D], columns: int) -> None:
    # The leading space matters: matplotlib omits labels that start with an underscore.
    texts = [f" {textwrap.shorten(name, _LEGEND_CHARACTERS, placeholder=' ...')}" for name in legend]
    fitting = max(1, min(3, int(_LEGEND_CHARACTERS * columns / 2 / max(map(len, texts)))))
    lines = list(legend.values())
    box = picture.legend(lines, texts, loc="outside lower left", ncols=fitting, fontsize=8, frameon=False)
    for text in box.get_texts():
        text.set_parse_math(False)


def _colour(text: str | None) -> Any:
    """Return a plotly colour for matplotlib. Plotly's ``rgb(1, 2, 3)`` has components from 0 to 255."""
    if text is None or not text.startswith("rgb"):
        return text
    red, green, blue, *alpha = (float(number) for number in re.findall(r"[\d.]+", text))
    return (red / 255, green / 255, blue / 255, *alpha)


def _start(axis: Any) -> float:
    return round(axis.domain[0] if axis.domain else 0.0, 6)


def _spot(x: float, y: float) -> Spot:
    return round(x, 4), round(y, 4)


def _plain(text: str | None) -> str:
    return html.unescape(re.sub(r"</?b>", "", text or "").replace("<br>", "\n"))


def mimebundle(chart: go.Figure, *, picture: bool) -> dict[str, Json]:
    """Return a figure as a Jupyter mime bundle of plotly JSON, with a PNG for pages that cannot draw plotly JSON."""
    import base64
    import json

    data = json.loads(chart.to_json())
    data["config"] = {"displaylogo": False, "responsive": True}
    bundle: dict[str, Json] = {"application/vnd.plotly.v1+json": data, "text/plain": "Metric curves"}
    if picture:
        bundle["image/png"] = base64.b64encode(png(chart)).decode()
    return bundle


def with_picture(chart: go.Figure) -> go.Figure:
    """Return a copy of the figure that includes a PNG when no page draws it, as in nbconvert or a batch job."""
    return _figure_with_picture()(chart)


@functools.cache
def _figure_with_picture() -> type[go.Figure]:
    """Return the figure class. It is made on first use, because importing plotly is slow."""
    import plotly.graph_objects as go

    from rlnb.display import front_end

    class Figure(go.Figure):
        """Plotly's figure, with a PNG in a static notebook."""

        def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Json]:
            return mimebundle(self, picture=not front_end.is_live() and drawable(self))

        def _ipython_display_(self) -> None:
            front_end.show_bundle(self._repr_mimebundle_())

    return Figure
