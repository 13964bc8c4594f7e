"""The figures that plugins add to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import plotly.graph_objects as go
import pytest

import rlnb
from rlnb.curves import panels
from rlnb.hooks.registry import manager
from rlnb.plugin import Panel, hookimpl

Panels = Callable[[rlnb.Run], Sequence[Panel] | None]


@pytest.fixture
def registered() -> Iterator[Callable[[Panels], None]]:
    """A function that registers ``rlnb_panels`` for the duration of the test."""
    names: list[str] = []

    def register(function: Panels) -> None:
        names.append(f"panels-{len(names)}")
        rlnb.register(type("Plugin", (), {"rlnb_panels": staticmethod(hookimpl(function))}), names[-1])

    yield register
    for name in names:
        manager().unregister(name=name)


@pytest.fixture(scope="module")
def runs(echo_root: Path) -> list[rlnb.Run]:
    return [rlnb.train("Echo", library="echo", max_iterations=2, seed=seed).wait(60) for seed in range(2)]


def lines(run: rlnb.Run) -> list[Panel]:
    return [Panel(title="<joints>", figure=lambda: go.Figure(go.Scatter(y=[1, 2])))]


def test_a_plugin_without_a_figure_for_a_run_adds_nothing(
    runs: list[rlnb.Run], registered: Callable[[Panels], None]
) -> None:
    assert list(panels.bundles(runs)) == []

    def nothing(run: rlnb.Run) -> None:
        return None

    registered(nothing)
    assert panels.pictures(runs) == ""


def test_the_heading_names_the_run_where_there_are_several(
    runs: list[rlnb.Run], registered: Callable[[Panels], None]
) -> None:
    registered(lines)
    headings = [bundle["text/plain"] for bundle in panels.bundles(runs) if len(bundle) == 2]
    assert headings == [f"{run.id}: <joints>" for run in runs]
    page = panels.pictures(runs[:1])
    assert page.startswith("<h3>&lt;joints&gt;</h3><img alt='&lt;joints&gt;' src='data:image/png;base64,")


def test_one_broken_panel_does_not_hide_the_others(runs: list[rlnb.Run], registered: Callable[[Panels], None]) -> None:
    def broken(run: rlnb.Run) -> list[Panel]:
        return [Panel(title="broken", figure=lambda: 1 / 0), *lines(run)]

    registered(broken)
    page = panels.pictures(runs[:1])
    assert "broken could not be drawn: ZeroDivisionError" in page
    assert "<h3>&lt;joints&gt;</h3><img" in page


def test_a_plugin_whose_panels_fail_is_named_and_the_report_is_written(
    runs: list[rlnb.Run], registered: Callable[[Panels], None]
) -> None:
    def fails(run: rlnb.Run) -> list[Panel]:
        raise ValueError("no such <file>")

    registered(fails)
    page = panels.pictures(runs[:1])
    plugin = "the plugin &#x27;panels-0&#x27; (registered by hand)"
    assert page.startswith(f"<p>rlnb_panels() of {plugin} raised ValueError: no such &lt;file&gt; (")
