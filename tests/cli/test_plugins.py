"""``rlnb plugins``: the list and the figures."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import plotly.graph_objects as go
import pytest
from typer.testing import Result

import rlnb
from rlnb.hooks.registry import manager
from rlnb.machine.packages import editable_line
from rlnb.plugin import Panel, hookimpl

Invoke = Callable[..., Result]
Start = Callable[..., str]


@pytest.fixture
def panel() -> Iterator[None]:
    """A plugin, registered by hand, that adds one figure to every run and prints while drawing it."""

    class Drawing:
        @staticmethod
        @hookimpl
        def rlnb_panels(run: rlnb.Run) -> list[Panel]:
            print("drawing")
            return [Panel(title="Loss", figure=lambda: go.Figure(go.Scatter(y=[1, 2])))]

    rlnb.register(Drawing, "drawing")
    yield
    manager().unregister(name="drawing")


def test_figures_print_only_json_whatever_a_plugin_prints(invoke: Invoke, start: Start, panel: None) -> None:
    result = invoke("plugins", "figures", start())
    assert result.exit_code == 0, result.output
    bundles = json.loads(result.stdout)
    assert any("application/vnd.plotly.v1+json" in bundle for bundle in bundles), bundles


def test_a_plugin_that_is_registered_by_hand_is_listed_with_its_hooks(invoke: Invoke, panel: None) -> None:
    assert re.search(r"drawing +registered by hand +hook rlnb_panels", invoke("plugins").stdout)


def test_the_remarks_on_a_plugin_are_listed(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    hooks = {
        "rlnb_chek": staticmethod(hookimpl(lambda manifest: [])),
        "rlnb_panels": staticmethod(lambda run: []),
    }
    with pytest.warns(UserWarning, match="The plugin 'odd'"):
        rlnb.register(type("Plugin", (), hooks), "odd")
    output = invoke("plugins").stdout
    manager().unregister(name="odd")
    assert "implements rlnb_chek, which is not a hook of rlnb, so it is never called. Did you mean" in output
    assert (
        "'rlnb_check'?; has a function rlnb_panels that is never called. Mark it with @rlnb.plugin.hookimpl" in output
    )


def test_the_next_commands_after_new_can_be_pasted_into_a_shell(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("plugins", "new", "my-lib", "--kind", "tasks", "--out", "my folder")
    folder = tmp_path / "my folder"
    pytest_line = f"{shlex.quote(sys.executable)} -m pytest '{folder}'"
    assert result.stdout.splitlines() == [editable_line(folder, "test"), pytest_line]
    assert f"'{folder}[test]'" in result.stdout
    assert "my folder is ready" in result.stderr
