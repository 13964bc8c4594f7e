"""The rows that a tracker gets are the points of the event files of the newest job, each one once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

import rlnb
from rlnb.tracking import Row, follow

WAIT_S = 60.0


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A pipe as stdin; return the descriptor whose end closes it."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        yield writing


def rows(run: rlnb.Run, stdin: int, after: float = -1) -> list[Row]:
    """Return all rows until stdin, which is closed here, has ended."""
    os.close(stdin)
    return [row for part in follow(run, after=after) for row in part]


def test_the_rows_are_the_points_of_the_event_files(run: rlnb.Run, stdin: int) -> None:
    result, series = rows(run, stdin), run.metrics["reward"]
    assert [row.frames for row in result] == series.frames
    assert [row.iteration for row in result] == series.iterations == [0, 1, 2, 3]
    assert [row.time_s for row in result] == pytest.approx(series.wall_time_s, abs=0.5)
    assert [row.values["reward"] for row in result] == series.values
    assert [row.values["Train/mean_reward"] for row in result] == series.values


def test_rows_that_the_tracker_has_are_left_out(run: rlnb.Run, stdin: int) -> None:
    frames = run.metrics["reward"].frames
    assert [row.frames for row in rows(run, stdin, after=frames[1])] == frames[2:]


def test_only_the_newest_job_is_read(run: rlnb.Run, stdin: int) -> None:
    run.resume(max_iterations=6).wait(WAIT_S)
    assert [row.iteration for row in rows(run, stdin)] == [4, 5]


def test_a_later_list_has_only_what_is_new(run: rlnb.Run, stdin: int) -> None:
    parts = follow(run)
    assert len(next(parts)) == 4
    os.close(stdin)
    assert list(parts) == []
