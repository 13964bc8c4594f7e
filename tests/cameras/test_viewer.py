"""The kernel's side of a 3D view: wrong arguments, and views that end. tests/browser tests the view itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.simulation.pool import pool


@pytest.fixture
def python(root: Path, viewer: str) -> Iterator[str]:
    """Command of the worker's interpreter. Processes started with it end with the test."""
    yield viewer
    pool.shut_down()


def asked(tmp_path: Path, verb: str) -> list[dict[str, object]]:
    """Return the request that a worker received."""
    path = tmp_path / "process.py.asked"
    requests = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [request["payload"] for request in requests if request["verb"] == verb]


def test_a_view_is_alive_until_it_is_closed(python: str, tmp_path: Path) -> None:
    shown = rlnb.view(rlnb.Task(id="Demo"), num_envs=2, actions="zero", speed=0.5, python=python)
    (request,) = asked(tmp_path, "view")
    assert (request["num_envs"], request["actions"], request["speed"]) == (2, "zero", 0.5)
    assert shown.alive
    assert shown.url == "http://127.0.0.1:4711/"
    assert repr(shown) == "Viewer('Demo', http://127.0.0.1:4711/)"
    shown.close()
    assert not shown.alive
    assert repr(shown) == "Viewer('Demo', ended)"
    assert shown._repr_mimebundle_() == {"text/plain": repr(shown), "text/html": "Viewer(&#x27;Demo&#x27;, ended)"}


def test_a_worker_that_cannot_show_a_view_reports_why(python: str, tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match="viser is not installed"):
        rlnb.view(rlnb.Task(id="Demo"), seed=13, python=python)


def test_robots_are_pushed_and_commands_are_held(python: str, tmp_path: Path) -> None:
    shown = rlnb.view(rlnb.Task(id="Demo"), python=python)
    assert shown.commands == {"base_velocity": {"lin_vel_x": (-1.0, 1.0)}}
    shown.push()
    shown.push(np.float32(0.5))
    shown.push(np.array([1, -2]))
    assert [request["velocity"] for request in asked(tmp_path, "push")] == [[1.0], [0.5], [1.0, -2.0]]
    shown.command("base_velocity", (1, 0, 0.5))
    shown.command("base_velocity", None)
    assert [request["value"] for request in asked(tmp_path, "hold")] == [[1.0, 0.0, 0.5], None]
    shown.close()


def test_what_is_no_number_does_not_reach_the_worker(python: str, tmp_path: Path) -> None:
    shown = rlnb.view(rlnb.Task(id="Demo"), python=python)
    with pytest.raises(rlnb.RlnbError, match=r"velocity='fast' is not a row of numbers. Use velocity=\(1.0, 0.0\)"):
        shown.push("fast")  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match=r"value=1.0 is not a row of numbers"):
        shown.command("base_velocity", 1.0)  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match="name=1 is not text"):
        shown.command(1, None)  # type: ignore[arg-type]
    assert asked(tmp_path, "push") == asked(tmp_path, "hold") == []
    shown.close()
    with pytest.raises(rlnb.RlnbError, match="The view of Demo has ended"):
        shown.push()


def test_wrong_numbers_are_refused_before_a_process_is_started(python: str, tmp_path: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="num_envs=0"):
        rlnb.view(rlnb.Task(id="Demo"), num_envs=0, python=python)
    with pytest.raises(rlnb.RlnbError, match="speed=0"):
        rlnb.view(rlnb.Task(id="Demo"), speed=0, python=python)
    assert asked(tmp_path, "view") == []


def test_in_a_report_there_is_a_line_of_text_and_no_widget(python: str) -> None:
    shown = rlnb.view(rlnb.Task(id="<b>Demo</b>"), python=python)
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<b>" not in bundle["text/html"]
    shown.close()
