"""The messages with curves to a page: first whole curves, then new points, of bounded size."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

import rlnb
from rlnb.curves import stream
from rlnb.curves.stream import FromPage
from rlnb.metrics.metrics import FRESH_S
from rlnb.storage.serial import from_json, to_json

ITERATIONS = 10
FRAMES_PER_ITERATION = 64


@pytest.fixture
def run(root):
    return rlnb.train("Echo", library="echo", max_iterations=ITERATIONS).wait()


def log(run, first, values, tag=None):
    """Log a value for each iteration from a given one on, as the library does."""
    tag = tag or run.record.library_spec.metrics["reward"]
    (path,) = run.record.folder.event_files()
    begun = run.metrics["reward"].wall_time_s[-1]
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for number, value in enumerate(values):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            event = Event(wall_time=begun + 1e-4 * (number + 1), step=first + number, summary=summary)
            writer.write(event.SerializeToString())
        writer.flush()
    time.sleep(FRESH_S)


class Page:
    """A page that applies messages like the script in the browser."""

    def __init__(self):
        self.curves = {}
        self.bytes = []

    def take(self, changes):
        heads, buffer = stream.packed(changes)
        self.bytes.append(len(buffer))
        total = sum(count for _, _, count in heads)
        xs, ys = np.frombuffer(buffer, "<f8", total), np.frombuffer(buffer, "<f4", total, 8 * total)
        at = 0
        for number, how, count in heads:
            x, y = xs[at : at + count], ys[at : at + count]
            at += count
            if how == "add":
                old_x, old_y = self.curves[number]
                x, y = np.concatenate([old_x, x]), np.concatenate([old_y, y])
            self.curves[number] = (x, y)


def test_a_page_gets_every_logged_point_once(run):
    live, page = stream.Stream([run], ["reward", "fps"], "frames"), Page()
    page.take(live.changes())
    assert page.curves[0][0].tolist() == [FRAMES_PER_ITERATION * (n + 1) for n in range(ITERATIONS)]
    assert page.curves[0][1].tolist() == pytest.approx(run.metrics["reward"].values)
    assert live.changes() == []
    log(run, ITERATIONS, [5.0, 6.0])
    changes = live.changes()
    assert [(change.number, change.how, len(change.x)) for change in changes] == [(0, "add", 2)]
    page.take(changes)
    assert page.curves[0][0][-1] == FRAMES_PER_ITERATION * (ITERATIONS + 2)
    assert page.curves[0][1][-2:].tolist() == [5.0, 6.0]
    assert not live.behind


def test_a_long_history_is_decimated_and_keeps_its_extremes(run):
    values = np.sin(np.arange(100_000) / 1000.0)
    values[77_777] = 9.0
    log(run, ITERATIONS, values)
    run.metrics.limit_s = 0.05
    live, page = stream.Stream([run], ["reward"], "iterations"), Page()
    deadline = time.monotonic() + 30
    page.take(live.changes())
    assert page.curves[0][0][-1] == ITERATIONS + len(values) - 1, "the newest point arrives first"
    while live.behind and time.monotonic() < deadline:
        time.sleep(FRESH_S)
        page.take(live.changes())
    assert max(page.bytes) <= stream.POINT_BYTES * stream.POINTS
    x, y = page.curves[0]
    assert len(x) <= stream.POINTS
    assert x[np.argmax(y)] == ITERATIONS + 77_777
    assert (np.diff(x) > 0).all()


def test_a_growing_curve_is_sent_once_and_stays_bounded_in_the_kernel(run):
    live, page = stream.Stream([run], ["reward"], "iterations"), Page()
    page.take(live.changes())
    at = ITERATIONS
    for _ in range(8):
        log(run, at, np.arange(300.0))
        at += 300
        (change,) = changes = live.changes()
        assert (change.how, len(change.x)) == ("add", 300)
        page.take(changes)
        assert len(live._curves[0][0].x) <= 2 * stream.POINTS
    assert page.curves[0][0].tolist() == [*range(at)]


def test_whole_curves_share_the_room_of_a_message(root, monkeypatch):
    runs = [rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, seed=seed).wait() for seed in (1, 2)]
    monkeypatch.setattr(stream, "MOST_BYTES", stream.POINT_BYTES * ITERATIONS * 3)
    live, page = stream.Stream(runs, ["reward", "fps"], "frames"), Page()
    page.take(live.changes())
    assert set(page.curves) == {0, 1, 2}
    assert live.behind
    page.take(live.changes())
    assert set(page.curves) == {0, 1, 2, 3}
    assert not live.behind


def test_seeds_become_a_mean_with_a_band(root):
    runs = [rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, seed=seed).wait() for seed in (1, 2, 3)]
    live, page = stream.Stream(runs, ["reward"], "frames", groups=[[0, 1, 2]]), Page()
    page.take(live.changes())
    assert set(page.curves) == {0, 1, 2}
    (x, low), (_, high), (_, mean) = (page.curves[number] for number in range(3))
    assert (low <= mean).all()
    assert (mean <= high).all()
    rewards = np.array([run.metrics["reward"].values for run in runs])
    assert mean[-1] == pytest.approx(rewards[:, -1].mean(), rel=1e-5)
    assert x[-1] == FRAMES_PER_ITERATION * ITERATIONS


def test_points_added_after_a_long_pause_are_bounded_too(run, monkeypatch):
    live, page = stream.Stream([run], ["reward", "fps"], "iterations"), Page()
    page.take(live.changes())
    monkeypatch.setattr(stream, "MOST_BYTES", stream.POINT_BYTES * 400)
    fps = run.record.library_spec.metrics["fps"]
    log(run, ITERATIONS, np.arange(300.0))
    log(run, ITERATIONS, np.arange(300.0), fps)
    while True:
        page.take(live.changes())
        if not live.behind:
            break
    assert max(page.bytes) <= stream.MOST_BYTES
    assert all(page.curves[number][0][-1] == ITERATIONS + 299 for number in (0, 1))


def test_wall_time_continues_if_the_start_was_not_recorded(run):
    for started in (run.path / "jobs").glob("*/started.json"):
        started.unlink()
    bare = rlnb.get_run(run.id)
    live, page = stream.Stream([bare], ["reward"], "wall_time"), Page()
    page.take(live.changes())
    log(bare, ITERATIONS, [1.0])
    page.take(live.changes())
    x = page.curves[0][0]
    assert x[0] == 0.0
    assert (np.diff(x) > 0).all()


def test_a_sample_of_the_machine_moves_to_its_x_value_once_the_next_iteration_is_logged(run):
    from rlnb.node.usage import Usage

    usage = Usage(run.record.folder.system, 0, [])
    usage._write({"cpu_cores": 1.0})
    live, page = stream.Stream([run], ["system/node0/cpu_cores"], "frames"), Page()
    page.take(live.changes())
    before = page.curves[0][0][0]
    (path,) = run.record.folder.event_files()
    with open(path, "ab") as file:
        value = Summary.Value(tag=run.record.library_spec.metrics["reward"], simple_value=1.0)
        later = Event(wall_time=time.time() + 60, step=ITERATIONS, summary=Summary(value=[value]))
        RecordWriter(file).write(later.SerializeToString())
    time.sleep(FRESH_S)
    page.take(live.changes())
    assert before == FRAMES_PER_ITERATION * ITERATIONS
    assert before < page.curves[0][0][0] < FRAMES_PER_ITERATION * (ITERATIONS + 1)


# -- messages --------------------------------------------------------------------------------------------------------


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
