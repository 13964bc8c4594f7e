"""The process of a tracker ends with a warning if the tracker fails, and reports how the run ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.tracking import Row, follow, outcome

TRACKER = """
import atexit, os, signal, rlnb.tracking
atexit.register(lambda: os.write(1, b'exit handler'))
def track(run):
    os.kill(os.getpid(), signal.SIGTERM)
    print(run.id)
    {code}
rlnb.tracking.main('Mine', track)
"""


def main(run: str | Path, code: str = "") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", TRACKER.format(code=code), str(run)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_process_follows_the_run_and_no_signal_or_exit_handler_disturbs_the_end(run: rlnb.Run) -> None:
    done = main(run.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run.id}\n", "")


def test_a_failure_is_a_warning_and_an_exit_status(run: rlnb.Run, tmp_path: Path) -> None:
    done = main(run.path, "raise OSError('the disk is full')")
    assert done.returncode == 1
    assert done.stderr == "Mine no longer follows this run: OSError: the disk is full\n"
    assert "Mine no longer follows this run: NotFoundError" in main(tmp_path / "nothing").stderr


def test_the_outcome_is_that_of_the_result(run: rlnb.Run) -> None:
    assert outcome(run) == "completed"


@pytest.mark.parametrize(("is_cancelled", "end"), [(True, "cancelled"), (False, "failed")])
def test_a_killed_job_has_no_result_and_is_cancelled_or_failed(run: rlnb.Run, is_cancelled: bool, end: str) -> None:
    job = run.jobs[-1]
    with contextlib.suppress(psutil.NoSuchProcess):  # its host would write a result if there were none
        psutil.Process((job.handle or {})["pid"]).wait(30)
    folder = job.folder
    folder.result.unlink()
    if is_cancelled:
        folder.cancel.write_text("{}")
    assert outcome(rlnb.get_run(run.id)) == end


# -- rows ------------------------------------------------------------------------------------------------------------


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
