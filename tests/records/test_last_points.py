"""The last values of an ended run: from the summary of its worker while it fits the event files, else from those."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from event_records import record, scalar
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from rlnb.metrics.metrics import LastPoint
from rlnb.records import last_points
from rlnb.records.last_points import points_of, write
from rlnb.storage import cache

NAME = "events.out.tfevents.1000000000.host"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The logs of an ended training, of which nothing has been read."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / NAME).write_bytes(scalar("loss", 1, 0.5) + scalar("reward", 2, 3.0) + scalar("loss", 3, 0.25))
    return folder


@pytest.fixture
def summary(tmp_path: Path, logs: Path) -> Path:
    path = tmp_path / "summary.json"
    write(path, logs, {}, math.inf)
    return path


def values(logs: Path, summary: Path | None, ends: dict[str, int] | None = None) -> dict[str, tuple[int | None, float]]:
    return {point.tag: (point.step, point.value) for point in points_of(logs, ends or {}, summary)}


def change(summary: Path, **parts: object) -> None:
    """Change a summary, as the owner of the run may."""
    summary.write_text(json.dumps({**json.loads(summary.read_text()), **parts}))


def test_the_summary_is_read_in_place_of_the_event_files(logs: Path, summary: Path) -> None:
    change(summary, points=[["loss", "", 3, 7.0]])
    assert values(logs, summary) == {"loss": (3, 7.0)}


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + scalar("loss", 4, 1.0))


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replace(path: Path) -> None:
    status = path.stat()
    path.with_name("x").write_bytes(path.read_bytes())
    os.utime(path.with_name("x"), ns=(status.st_atime_ns, status.st_mtime_ns))
    path.with_name("x").replace(path)


def join(path: Path) -> None:
    path.with_name("events.out.tfevents.2000000000.host").write_bytes(scalar("loss", 4, 1.0))


@pytest.mark.parametrize("changes", [grow, touch, replace, join, Path.unlink])
def test_a_summary_does_not_count_once_the_event_files_are_others(
    logs: Path, summary: Path, changes: Callable[[Path], object]
) -> None:
    change(summary, points=[["loss", "", 3, 7.0]])
    assert values(logs, summary)["loss"] == (3, 7.0)
    changes(logs / NAME)
    assert values(logs, summary).get("loss") != (3, 7.0)
    assert values(logs, summary) == values(logs, None)


def test_a_summary_does_not_count_for_other_ends_of_the_files(logs: Path, summary: Path) -> None:
    end = len(scalar("loss", 1, 0.5))
    assert values(logs, summary, {NAME: end}) == {"loss": (1, 0.5)}
    assert values(logs, summary)["loss"] == (3, 0.25)


@pytest.mark.parametrize(
    "parts",
    [
        {"points": None},
        {"points": "loss"},
        {"points": [["loss", "", 3]]},
        {"points": [["loss", "", 3, "7"]]},
        {"points": [["loss", "", True, 7.0]]},
        {"points": [["loss", "", 2**63, 7.0]]},
        {"points": [["loss", "", 3.5, 7.0]]},
        {"points": [["loss", "", 3, True]]},
        {"points": [["loss", "", 3, 10**400]]},
        {"points": [["\ud800", "", 3, 7.0]]},
        {"points": [["loss", "\udcff", 3, 7.0]]},
        {"points": [[["loss"], "", 3, 7.0]]},
        {"points": {"loss": 1}},
        {"version": 2, "points": [["loss", "", 3, 7.0]]},
        {"version": "1", "points": [["loss", "", 3, 7.0]]},
        {"files": [], "points": [["loss", "", 3, 7.0]]},
        {"files": None, "points": [["loss", "", 3, 7.0]]},
    ],
    ids=str,
)
def test_of_a_malformed_summary_nothing_is_believed(logs: Path, summary: Path, parts: dict[str, Any]) -> None:
    change(summary, **parts)
    assert values(logs, summary) == {"loss": (3, 0.25), "reward": (2, 3.0)}


@pytest.mark.parametrize("content", ["", "{", "[]", "1", "[" * 100_000])
def test_a_torn_summary_is_none(logs: Path, summary: Path, content: str) -> None:
    summary.write_text(content)
    assert values(logs, summary)["loss"] == (3, 0.25)


def test_a_summary_that_is_no_file_is_none(logs: Path, summary: Path) -> None:
    summary.unlink()
    os.mkfifo(summary)
    assert values(logs, summary)["loss"] == (3, 0.25)


def test_values_that_are_not_finite_and_removed_curves_are_kept(tmp_path: Path, logs: Path) -> None:
    (logs / NAME).write_bytes(scalar("nan", 1, math.nan) + scalar("inf", 1, -math.inf))
    summary = tmp_path / "summary.json"
    write(summary, logs, {}, math.inf)
    read = values(logs, summary)
    assert read["inf"] == (1, -math.inf)
    assert read["nan"][0] == 1
    assert math.isnan(read["nan"][1])
    change(summary, points=[["gone", "", None, math.nan]])
    kept_before = points_of(logs, {}, summary)
    assert LastPoint(tag="inf", folder="", step=1, value=-math.inf) in kept_before, "it was read in this process"


def test_no_summary_is_written_of_files_that_cannot_be_read_whole(tmp_path: Path, logs: Path) -> None:
    summary = tmp_path / "summary.json"
    write(summary, logs, {}, -1.0)
    assert not summary.exists(), "the time did not suffice"
    with (logs / NAME).open("ab") as file:
        file.write(bytes(64))
    write(summary, logs, {}, math.inf)
    assert not summary.exists(), "the file is damaged"


def test_what_was_read_is_kept_until_the_files_change(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    read = last_points.last_points
    monkeypatch.setattr(last_points, "last_points", lambda *args: reads.append(args) or read(*args))
    first = values(logs, None)
    assert values(logs, None) == first
    assert len(reads) == 1
    grow(logs / NAME)
    assert values(logs, None)["loss"] == (4, 1.0)
    assert len(reads) == 2


def test_an_event_file_that_could_not_be_read_is_read_again(logs: Path) -> None:
    target = logs.parent / "target"
    link = logs / "events.out.tfevents.2000000000.host"
    link.symlink_to(target)
    assert "late" not in values(logs, None)
    target.write_bytes(scalar("late", 1, 1.0))
    assert values(logs, None)["late"] == (1, 1.0)
    loop = logs / "events.out.tfevents.3000000000.host"
    loop.symlink_to(loop)
    values(logs, None)
    stamp = cache.stamp_of(loop)
    loop.unlink()
    loop.write_bytes(scalar("later", 1, 1.0))
    assert stamp == (0, 0, 0)
    assert values(logs, None)["later"] == (1, 1.0)


def test_tens_of_thousands_of_tags_have_a_summary(tmp_path: Path, logs: Path) -> None:
    summary = tmp_path / "summary.json"
    event = Event(
        wall_time=1e9, step=1, summary=Summary(value=[{"tag": f"t/{n}", "simple_value": n} for n in range(10_000)])
    )
    (logs / NAME).write_bytes(record(event))
    write(summary, logs, {}, math.inf)
    assert summary.stat().st_size * 10 < last_points.MOST_BYTES
    change(summary, points=[["t/0", "", 1, 7.0]])
    assert values(logs, summary) == {"t/0": (1, 7.0)}
