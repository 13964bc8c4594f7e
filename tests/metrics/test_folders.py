"""Folders are curves of their own, restarts replace points, and names never change their meaning."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from rlnb.metrics.columns import Scalar
from rlnb.metrics.events import EventReader
from rlnb.metrics.folders import find, split

TAG = "loss"
Followed = tuple[dict[str, list[Scalar]], int]
"""The points of a reader by name, and its revision."""


def log(
    folder: Path, steps: Iterable[int], *, second: int, tag: str = TAG, purge: int | None = None, clock: float = 1.0
) -> Path:
    """Append points to an event file, whose values are ``1000 * second + step``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{1_000_000_000 + second}.host"
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        if not file.tell():
            writer.write(Event(wall_time=1e9 + second, file_version="brain.Event:2").SerializeToString())
        if purge is not None:
            start = SessionLog(status=SessionLog.START)
            writer.write(Event(wall_time=1e9 + second, step=purge, session_log=start).SerializeToString())
        for number, step in enumerate(steps):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=1000 * second + step)])
            event = Event(wall_time=1e9 + second + clock * number, step=step, summary=summary)
            writer.write(event.SerializeToString())
    return path


def read(folder: Path) -> dict[str, list[float]]:
    reader = EventReader(folder)
    reader.refresh()
    return {name: [value for _, _, value in column] for name, column in reader.scalars.items()}


def test_a_tag_in_several_folders_is_several_curves(tmp_path: Path) -> None:
    log(tmp_path, range(2), second=1)
    log(tmp_path / "b" / "c", range(3), second=2)
    log(tmp_path / "b" / "c", [7], second=2, tag="other")
    assert read(tmp_path) == {"loss [./]": [1000, 1001], "loss [b/c/]": [2000, 2001, 2002], "other": [2007]}


def test_a_name_is_never_that_of_another_tag(tmp_path: Path) -> None:
    log(tmp_path / "a", [0], second=1)
    log(tmp_path / "b", [0], second=2)
    log(tmp_path / "c", [0], second=3, tag="loss [b/]")
    log(tmp_path / "c", [0], second=3, tag="speed [m/s]")
    assert read(tmp_path) == {
        "loss [a/]": [1000], "loss [b/]": [2000], "loss [b/] [c/]": [3000], "speed [m/s]": [3000],
    }  # fmt: skip
    assert split("loss [b/] [c/]") == ("loss [b/]", " [c/]")
    assert split("loss [trial [2] of [9]/]") == ("loss", " [trial [2] of [9]/]")
    assert split("loss [trial ]2/]") == ("loss", " [trial ]2/]")
    assert split("speed [m/s]") == ("speed [m/s]", "")


def test_a_tag_keeps_its_curve_when_a_second_folder_has_it(tmp_path: Path) -> None:
    log(tmp_path / "train", [0], second=5)
    reader = EventReader(tmp_path)
    reader.refresh()
    assert find(TAG, reader.curves) == TAG
    log(tmp_path / "another", [0], second=6)
    reader.refresh()
    assert find(TAG, reader.curves) == find("loss [train]", reader.curves) == "loss [train/]"
    assert find("loss [nowhere]", reader.curves) is None
    assert reader.revision == 1, "the name has changed"


def test_a_folder_can_be_named_by_its_last_part_if_only_one_has_it(tmp_path: Path) -> None:
    for second, folder in enumerate(("x/train", "x/eval", "y/eval")):
        log(tmp_path / folder, [0], second=second)
    reader = EventReader(tmp_path)
    reader.refresh()
    assert find("loss [train/]", reader.curves) == "loss [x/train/]"
    assert find("loss [eval/]", reader.curves) is None


def test_folders_whose_names_look_alike_are_different_curves(tmp_path: Path) -> None:
    for second, folder in enumerate(("a\tb", "a\nb", "a\\tb", "a?b", os.fsdecode(b"a\xffb"))):
        log(tmp_path / folder, [0], second=second)
    names = ["loss [a\\tb/]", "loss [a\\nb/]", "loss [a\\\\tb/]", "loss [a?b/]", "loss [a\\udcffb/]"]
    assert read(tmp_path) == {name: [1000 * second] for second, name in enumerate(names)}
    assert all(name.isprintable() for name in names)


@pytest.mark.parametrize("purge", [5, None])
@pytest.mark.parametrize("live", [True, False])
def test_a_restart_replaces_the_points_from_its_step_on(tmp_path: Path, purge: int | None, live: bool) -> None:
    reader = EventReader(tmp_path)
    log(tmp_path, range(10), second=1)
    log(tmp_path, range(8), second=1, tag="other")
    if live:
        reader.refresh()
    log(tmp_path, range(5, 9), second=2, purge=purge)
    reader.refresh()
    assert [step for step, _, _ in reader.scalars[TAG]] == list(range(9))
    assert [value for _, _, value in reader.scalars[TAG]][5:] == [2005, 2006, 2007, 2008]
    assert len(reader.scalars["other"]) == (5 if purge else 8), "TensorBoard purges every tag"
    assert len(reader.written(TAG)) == 14, "accounts need what was replaced"


def test_after_many_restarts_each_step_counts_once_whatever_the_clock_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    expected: dict[int, float] = {}
    reader = EventReader(tmp_path)
    for second in range(30):
        first = int(rng.integers(0, 20))
        steps = range(first, first + int(rng.integers(1, 10)))
        log(tmp_path, steps, second=second, purge=first if second % 3 == 0 else None, clock=float(rng.normal()))
        expected = {step: value for step, value in expected.items() if step < first}
        expected |= {step: 1000 * second + step for step in steps}
        reader.refresh()
        for read_now in (reader, EventReader(tmp_path)):
            read_now.refresh()
            assert [(step, value) for step, _, value in read_now.scalars[TAG]] == sorted(expected.items())


def test_steps_that_go_back_within_a_file_replace_and_equal_ones_are_kept(tmp_path: Path) -> None:
    path = log(tmp_path, [0, 1, 1, 2, 3], second=1)
    reader = EventReader(tmp_path)
    reader.refresh()
    assert [step for step, _, _ in reader.scalars[TAG]] == [0, 1, 1, 2, 3]
    assert log(tmp_path, [2, 2, 3], second=1) == path
    reader.refresh()
    assert [step for step, _, _ in reader.scalars[TAG]] == [0, 1, 1, 2, 2, 3]
    assert reader.revision == 1


def test_a_file_that_grows_beside_a_newer_one_keeps_its_place(tmp_path: Path) -> None:
    """Two processes write the same tag into one folder. The curve does not depend on when it is read."""
    live = EventReader(tmp_path)
    for steps in (range(3), range(3, 6)):
        for second in (1, 2):
            log(tmp_path, steps, second=second)
            live.refresh()
    after = EventReader(tmp_path)
    after.refresh()
    assert list(live.scalars[TAG]) == list(after.scalars[TAG])
    assert [value for _, _, value in live.scalars[TAG]] == [2000 + step for step in range(6)]


def test_measures_of_a_machine_are_in_order_of_time_and_none_is_replaced(tmp_path: Path) -> None:
    log(tmp_path, range(3), second=10)
    log(tmp_path, range(3), second=5)
    reader = EventReader(tmp_path, by_time=True)
    reader.refresh()
    assert [value for _, _, value in reader.scalars[TAG]] == [5000, 5001, 5002, 10_000, 10_001, 10_002]


def test_a_start_that_removes_all_points_removes_them_for_good(tmp_path: Path) -> None:
    log(tmp_path, range(5), second=1)
    reader = EventReader(tmp_path)
    reader.refresh()
    log(tmp_path, [], second=1, purge=0)
    reader.refresh()
    assert (dict(reader.scalars), reader.revision) == ({}, 1)
    for step in (6, 7):
        log(tmp_path, [step], second=1)
        reader.refresh()
    assert [step for step, _, _ in reader.scalars[TAG]] == [6, 7]


@pytest.mark.parametrize("second", [1, 2])
def test_a_start_removes_points_before_the_first_point_that_follows_it(tmp_path: Path, second: int) -> None:
    """It may be the only event of a later file, or a lower one after another."""
    log(tmp_path, range(9), second=1, purge=0)
    reader = EventReader(tmp_path)
    reader.refresh()
    for purge in (7, 4):
        log(tmp_path, [], second=second, purge=purge)
        reader.refresh()
        assert [step for step, _, _ in reader.scalars[TAG]] == list(range(purge))
    assert reader.revision == 2


def test_a_measure_of_a_later_file_that_is_older_than_those_before_takes_its_place(tmp_path: Path) -> None:
    log(tmp_path, range(100), second=0)
    reader = EventReader(tmp_path, by_time=True)
    for _ in range(3):
        log(tmp_path, [0], second=50)
        reader.refresh()
        times = [time for _, time, _ in reader.scalars[TAG]]
        assert times == sorted(times)


@pytest.mark.parametrize("by_time", [False, True])
def test_a_followed_curve_is_that_of_a_fresh_reader_and_the_revision_tells_of_changes(
    tmp_path: Path, by_time: bool
) -> None:
    for seed in range(15):
        rng, root = np.random.default_rng(seed), tmp_path / str(seed)
        live = EventReader(root, by_time=by_time)
        before: Followed = ({}, 0)
        step = dict.fromkeys(range(5), 0)
        for _ in range(rng.integers(5, 15)):
            second, (restarts, back) = int(rng.integers(0, 5)), rng.random(2) < 0.15
            step[second] = max(0, step[second] + int(rng.integers(-6, 0) if restarts or back else rng.integers(0, 3)))
            steps = () if restarts else [step[second] + more for more in (0, 0, 1, 3)[: rng.integers(1, 5)]]
            purge, tag = step[second] if restarts else None, "ab"[rng.integers(0, 2)]
            folder = root if second % 2 else root / "below"
            log(folder, steps, second=second, tag=tag, purge=purge, clock=float(rng.normal(0.0, 3.0)))
            if rng.random() < 0.6:
                before = _as_fresh(live, before, EventReader(root, by_time=by_time))


def _as_fresh(live: EventReader, before: Followed, fresh: EventReader) -> Followed:
    """Compare a followed reader with a fresh one and with its own state before; return its state."""
    live.refresh()
    fresh.refresh()
    points, revision = {name: list(column) for name, column in live.scalars.items()}, live.revision
    assert points == {name: list(column) for name, column in fresh.scalars.items()}
    grown = all(points.get(name, [])[: len(old)] == old for name, old in before[0].items())
    assert grown or revision > before[1]
    return points, revision


def test_a_million_steps_that_go_to_and_fro_are_joined_in_a_moment(tmp_path: Path) -> None:
    from rlnb.metrics.columns import Column
    from rlnb.metrics.folders import without_replaced

    steps = np.arange(1_000_000) // 2 + 10 * (np.arange(1_000_000) % 2)
    column = Column.of((steps, steps.astype(float), steps.astype(float)))
    begun = time.process_time()
    kept = without_replaced([(column, None)])[0]
    assert time.process_time() - begun < 2.0
    assert (np.diff(kept) >= 0).all()
