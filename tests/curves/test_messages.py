"""The messages between the dashboard and its page."""

import json
import re
from pathlib import Path

import pytest

import rlnb
from rlnb.curves import messages
from rlnb.curves.messages import FromPage
from rlnb.curves.stream import BAND
from rlnb.storage.serial import from_json, to_json

PAGE = Path(messages.__file__).with_name("dashboard.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runs(echo_root):
    envs = ((1, 4), (2, 4), (1, 8))
    return [rlnb.train("Echo", library="echo", max_iterations=2, seed=seed, num_envs=n).wait() for seed, n in envs]


def test_every_key_that_the_page_sends_is_a_field():
    literals = re.findall(r"(?:model\.send|this\.tell)\(\{(.*?)\}\)", PAGE)
    keys = {key for literal in literals for key in re.findall(r"(\w+):", literal)}
    assert keys == set(FromPage.__slots__)
    asks = set(re.findall(r'ask: "([^"]+)"', PAGE))
    for ask in asks:
        assert from_json(FromPage, {"ask": ask}).ask == ask


def test_an_unknown_request_is_refused():
    with pytest.raises(rlnb.RlnbError, match="ask='delete' is not a value of type"):
        from_json(FromPage, {"ask": "delete"})


def test_the_row_of_a_run_has_its_state_and_its_share(runs):
    row = messages.row(runs[0], "", 1)
    assert (row.name, row.state, row.share, row.going, row.log) == (runs[0].id, "completed", 1.0, False, "")
    assert json.dumps(to_json(row))


def test_each_run_has_a_trace_in_each_subplot_and_one_legend(runs):
    layout = messages.layout(runs, ["reward", "fps"], "iterations", None)
    assert len(layout.traces) == 2 * 3
    assert [trace["showlegend"] for trace in layout.traces] == [True] * 3 + [False] * 3
    assert {trace["yaxis"] for trace in layout.traces[3:]} == {"y2"}
    assert layout.layout["xaxis"]["title"]["text"] == "iteration"
    assert layout.metrics[0] == "reward"
    assert len(set(layout.metrics)) == len(layout.metrics)


def test_the_mean_of_a_group_has_the_traces_of_a_band(runs):
    groups = messages.groups_of(runs)
    assert groups == [[0, 1], [2]], "runs that differ only in the seed are one group"
    layout = messages.layout(runs, ["reward"], "frames", groups)
    assert len(layout.traces) == len(BAND) * 2
    low, high, mean = layout.traces[:3]
    assert (low["fill"], high["fill"], low["line"]["width"], mean["line"]["width"]) == ("none", "tonexty", 0, 1.8)
    assert mean["name"] == "num_envs 4 (2 seeds)"
    assert [trace["showlegend"] for trace in layout.traces] == [False, False, True] * 2
