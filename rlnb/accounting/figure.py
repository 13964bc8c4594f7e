"""The parts of the wall time of runs, as stacked bars."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rlnb.accounting.account import Account
from rlnb.accounting.parts import Parts

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS: Mapping[str, str] = {
    "waiting": "#bbbbbb",
    "starting": "#6fa8dc",
    "useful": "#3a923a",
    "lost": "#c44e52",
    "checkpointing": "#8c6bb1",
    "restarting": "#e1812c",
    "idle": "#e6e6e6",
}
"""Colour of each part: green for work that was kept, red for work that was lost."""
_UNITS = ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
"""Longest bar in seconds, seconds per unit, unit."""
_BAR_PX, _MARGIN_PX, _WIDTH_PX = 22, 130, 900


def bars(accounts: Sequence[Account]) -> go.Figure:
    """Return a horizontal bar for each run, the first at the top, with one colour for each part of its wall time."""
    import plotly.graph_objects as go

    from rlnb.curves.figure import with_picture

    longest_s = max((account.parts.wall_s for account in accounts), default=0.0)
    per_unit, unit = next((scale, unit) for most_s, scale, unit in _UNITS if longest_s <= most_s)
    ids = [html.escape(account.run) for account in accounts]
    chart, base = go.Figure(), [0.0] * len(accounts)
    for name, _ in Parts().items():
        seconds = [dict(account.parts.items())[name] for account in accounts]
        lengths = [0.0 if math.isnan(value) else value / per_unit for value in seconds]
        if any(lengths):
            look = {"name": name, "orientation": "h", "marker": {"color": COLOURS[name]}, "showlegend": True}
            chart.add_trace(go.Bar(x=lengths, y=ids, base=base, **look))
            base = [below + length for below, length in zip(base, lengths, strict=True)]
    chart.update_layout(
        barmode="overlay",  # each bar names its base, also for readers that cannot stack
        template="simple_white",
        height=_BAR_PX * max(1, len(accounts)) + _MARGIN_PX,
        width=_WIDTH_PX,  # the picture of a figure without a width has a size of its own
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.0},  # not over the numbers
    )
    chart.update_xaxes(title_text=f"wall time ({unit})")
    chart.update_yaxes(autorange="reversed", type="category", automargin=True)
    return with_picture(chart)
