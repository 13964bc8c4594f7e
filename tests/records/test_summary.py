"""The summary of a run: read again only if the run may have changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rlnb
from rlnb.records import summary
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.progress import Progress
from rlnb.records.record import RunRecord
from rlnb.storage.cache import SETTLED_S


@pytest.fixture(scope="module")
def original(echo_root: Path) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=3).wait()


@pytest.fixture
def run(copied: Callable[[list[rlnb.Run]], list[rlnb.Run]], original: rlnb.Run) -> rlnb.Run:
    """A run that ended some time ago."""
    (run,) = copied([original])
    age(run.path)
    return run


def age(folder: Path) -> None:
    """Make everything below a folder older than a write that may not show."""
    ago = time.time() - 2 * SETTLED_S
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (ago, ago))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs whose summaries were read."""
    ids: list[str] = []
    read = summary._read

    def counted(record: RunRecord, metrics: bool = True) -> object:
        ids.append(record.id)
        return read(record, metrics)

    monkeypatch.setattr(summary, "_read", counted)
    return ids


def table() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = rlnb.runs().table().to_dict("records")
    return rows


def test_a_second_table_reads_no_ended_run_again(run: rlnb.Run, reads: list[str]) -> None:
    first = table()
    assert first[0]["iteration"] == "3/3"
    assert table() == first
    assert reads == [run.id]


def tag(run: rlnb.Run) -> None:
    run.tags.add("mine")


def resume(run: rlnb.Run) -> None:
    RunDir(run.path).next_job("train", lambda name: {"job.json": {"kind": "train"}})


def log(run: rlnb.Run) -> None:
    (path,) = run.path.joinpath("logs").glob("*tfevents*")
    path.write_bytes(path.read_bytes()[:-40])


def log_elsewhere(run: rlnb.Run) -> None:
    (path,) = run.path.joinpath("logs").glob("*tfevents*")
    path.with_name("further").mkdir()
    (path.parent / "further" / path.name).write_bytes(path.read_bytes())


def damage(run: rlnb.Run) -> None:
    JobDir(run.path / "jobs" / "0-train").result.write_text("{")


def rewrite(run: rlnb.Run) -> None:
    rewrite_with(run, tags=["other"])


def rewrite_with(run: rlnb.Run, **changes: object) -> None:
    manifest = RunDir(run.path).manifest
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


@pytest.mark.parametrize("change", [tag, resume, log, log_elsewhere, damage, rewrite])
def test_a_change_shows_in_the_next_table(run: rlnb.Run, change: Callable[[rlnb.Run], None]) -> None:
    before = table()
    assert table() == before
    change(run)
    after = table()
    assert after != before
    age(run.path)
    assert table() == after


def test_a_run_that_has_just_ended_is_read_again(run: rlnb.Run, reads: list[str]) -> None:
    os.utime(run.path / "jobs" / "0-train" / "result.json")
    table(), table()
    assert reads == [run.id] * 2


def test_a_run_that_may_go_on_is_read_again(run: rlnb.Run, reads: list[str]) -> None:
    result = JobDir(run.path / "jobs" / "0-train").result
    result.write_text(
        json.dumps({**json.loads(result.read_text()), "outcome": "failed", "values": {"interrupted": True}})
    )
    age(run.path)
    table(), table()
    assert reads == [run.id] * 2


def test_an_unreadable_result_hides_no_run_however_old_it_is(run: rlnb.Run) -> None:
    damage(run)
    age(run.path)
    assert [one["state"] for one in table()] == ["lost"]
    assert [one["state"] for one in table()] == ["lost"]


def test_a_table_holds_no_curves_in_memory(run: rlnb.Run) -> None:
    runs = rlnb.runs()
    runs.table("fps")
    assert runs[0].record._metrics is None


def test_a_damaged_record_hides_only_what_it_holds(run: rlnb.Run) -> None:
    rewrite_with(run, created="yesterday")
    shown = rlnb.Run(run.path).summary()
    assert (shown.created, shown.progress, shown.state) == (None, (3, 3), "completed")
    assert shown.reward is not None


def test_a_count_of_any_size_has_a_share(run: rlnb.Run) -> None:
    assert Progress(10**400, 3).share == 1.0
    assert (Progress(0, 0).share, Progress(1, 4).share) == (0.0, 0.25)


def test_a_summary_of_curves_that_are_loaded_reads_no_others(run: rlnb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = rlnb.Run(run.path)
    assert loaded.metrics.last("reward") == loaded.summary().reward

    def refuse(*_: object) -> None:
        raise AssertionError("the event files are read again")

    monkeypatch.setattr("rlnb.records.last_points.points_of", refuse)
    assert loaded.summary().reward is not None
