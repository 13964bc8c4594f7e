"""The messages between the dashboard and its page."""

import json
import re
from pathlib import Path

import pytest

import rlnb
from rlnb.curves import stream
from rlnb.curves.stream import FromPage
from rlnb.storage.serial import from_json, to_json

FOLDER = Path(stream.__file__).parent
PAGE = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("feed.js", "dashboard.js"))


@pytest.fixture(scope="module")
def runs(echo_root):
    goals = ((1, 4.0), (2, 4.0), (1, 8.0))
    return [
        rlnb.train("Echo", library="echo", max_iterations=2, seed=seed, agent={"goal": goal}).wait()
        for seed, goal in goals
    ]


def test_every_key_that_the_page_sends_is_a_field():
    literals = re.findall(r"this\.tell\(\{(.*?)\}\)", PAGE)
    keys = {key for literal in literals for key in re.findall(r"(\w+):", literal)}
    assert keys == set(FromPage.__slots__)
    asks = set(re.findall(r'ask: "([^"]+)"', PAGE))
    for ask in asks:
        assert from_json(FromPage, {"ask": ask}).ask == ask


def test_the_page_needs_nothing_that_browsers_keep_from_plain_http():
    assert not re.findall(r"\b(?:crypto\.\w+|navigator\.(?:clipboard|serviceWorker)|caches)\(", PAGE)


def test_an_unknown_request_is_refused():
    with pytest.raises(rlnb.RlnbError, match="ask='delete' is not a value of type"):
        from_json(FromPage, {"ask": "delete"})


def test_the_row_of_a_run_has_its_state_and_its_share(runs):
    row = stream.row_of(runs[0], "", 1)
    assert (row.name, row.state, row.share, row.going, row.log) == (runs[0].id, "completed", 1.0, False, "")
    assert json.dumps(to_json(row))


def test_each_metric_has_a_chart_and_each_run_a_line(runs):
    layout = stream.layout(runs, ["reward", "success_rate", "raw/tag"], "iterations", None)
    assert [(panel.title, panel.unit, panel.range) for panel in layout.panels] == [
        ("reward", "return", None),
        ("success rate", "share, 0 to 1", (-0.02, 1.02)),
        ("raw/tag", "value", None),
    ]
    assert [line.name for line in layout.lines] == ["seed 1, goal 4", "seed 2, goal 4", "seed 1, goal 8"]
    assert len({line.color for line in layout.lines}) == 3
    assert (layout.horizontal, layout.band) == ("iteration", False)
    assert layout.metrics[0] == "reward"
    assert len(set(layout.metrics)) == len(layout.metrics)


def test_seeds_that_start_from_runs_of_their_own_are_one_group(echo_root, runs):
    later = [
        rlnb.train("Echo", library="echo", max_iterations=2, seed=run.manifest.seed, init_from=run) for run in runs[:2]
    ]
    assert stream.groups_of([run.wait() for run in later]) == [[0, 1]]
    assert stream.groups_of([runs[0], later[1]]) == [[0], [1]], "weights of a run are another beginning"


def test_each_group_has_a_line_with_a_band(runs):
    groups = stream.groups_of(runs)
    assert groups == [[0, 1], [2]], "runs that differ only in the seed are one group"
    layout = stream.layout(runs, ["reward"], "frames", groups)
    assert layout.band
    assert [line.name for line in layout.lines] == ["goal 4 (2 seeds)", "goal 8 (1 seed)"]
