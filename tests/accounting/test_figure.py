"""The bars of the parts of runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from rlnb.accounting.account import Account, Parts
from rlnb.accounting.goodput import bars
from rlnb.display.figures import png


def account(run: str, **seconds: float) -> Account:
    return Account(
        run=run,
        path=Path(run),
        task="t",
        state="completed",
        parts=Parts(**seconds),
        interruptions=(),
        held_s=0.0,
        node_hours=0.0,
        gpu_hours=0.0,
        frames=0.0,
        checkpoint_bytes=0,
    )


def test_each_bar_begins_where_the_part_before_it_ends() -> None:
    chart = bars([account("a", waiting_s=60.0, useful_s=540.0), account("<b>", useful_s=600.0, lost_s=60.0)])
    traces = {trace.name: trace for trace in chart.data}
    assert [*traces] == ["waiting", "useful", "lost"]
    assert list(traces["useful"].x) == [9.0, 10.0]
    assert list(traces["useful"].base) == [1.0, 0.0]
    assert list(traces["lost"].base) == [10.0, 10.0]
    assert list(traces["lost"].y) == ["a", "&lt;b&gt;"]
    assert chart.layout.xaxis.title.text == "wall time (min)"
    assert png(chart).startswith(b"\x89PNG")


@pytest.mark.parametrize(("seconds", "unit"), [(90.0, "s"), (7000.0, "min"), (90_000.0, "h")])
def test_the_unit_suits_the_longest_run(seconds: float, unit: str) -> None:
    assert bars([account("a", useful_s=seconds)]).layout.xaxis.title.text == f"wall time ({unit})"


def test_the_picture_grows_with_the_number_of_runs_and_is_flat_for_one() -> None:
    sizes = []
    for count in (1, 11):
        picture = Image.open(io.BytesIO(png(bars([account(f"run {n}", useful_s=60.0) for n in range(count)]))))
        sizes.append(picture.width / picture.height)
    assert sizes[0] > 5.0
    assert sizes[1] < sizes[0] / 2.0


def test_the_legend_is_above_the_bars_and_their_numbers() -> None:
    legend = bars([account("a", useful_s=1.0)]).layout.legend
    assert (legend.yanchor, legend.y) == ("bottom", 1.0)


def test_no_runs_have_an_empty_figure() -> None:
    assert not bars([]).data
