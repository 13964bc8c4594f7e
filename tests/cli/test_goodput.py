"""``rlnb goodput``: the time, the interruptions and the cost of runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from typer.testing import Result

import rlnb

Invoke = Callable[..., Result]
Start = Callable[..., str]
Ended = Callable[[str], str]


def test_goodput_prints_the_parts_the_interruptions_and_the_sum(invoke: Invoke, start: Start, ended: Ended) -> None:
    good, bad = start(), start("--agent", "crash_at=2", "--tag", "bad")
    ended(good)
    with pytest.raises(rlnb.RunError):
        rlnb.get_run(bad).wait(60)
    text = invoke("goodput").stdout
    assert good in text
    assert "waiting" in text
    assert "error" in text
    assert "2 runs, " in text
    assert "1 interruption, one every" in text
    data = json.loads(invoke("goodput", "--json").stdout)
    assert {row["run"] for row in data["runs"]} == {good, bad}
    assert [(line["run"], line["cause"], line["lost_iterations"]) for line in data["interruptions"]] == [
        (bad, "error", 2)
    ]
    assert bad not in invoke("goodput", good).stdout
    assert good not in invoke("goodput", "--tag", "bad").stdout


def test_goodput_of_no_runs_says_so(invoke: Invoke) -> None:
    assert "no runs with a training" in invoke("goodput").stdout


def test_ids_and_filters_both_have_to_fit(invoke: Invoke) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1, tags=["mine"]).wait(60)
    other = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    listed = json.loads(invoke("goodput", run.id, other.id, "--tag", "mine", "--json").stdout)
    assert [row["run"] for row in listed["runs"]] == [run.id]


def test_a_run_that_has_just_been_made_has_no_share(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", launcher=rlnb.injected())
    monkeypatch.setattr(time, "time", run.created.timestamp)
    text = invoke("goodput").stdout
    assert run.id in text
    assert "nan" not in text
    assert ": ;" not in text
