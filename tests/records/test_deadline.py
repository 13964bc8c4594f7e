"""The time at which agents end a job, told by a process whose clock differs from theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.records import deadline
from rlnb.records.deadline import DeadlineReader, here_s
from rlnb.records.layout import JobDir
from rlnb.storage import clock, files


@pytest.fixture(autouse=True)
def _unread_clock() -> Iterator[None]:
    clock._offsets.clear()
    yield
    clock._offsets.clear()


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    path = tmp_path / "runs" / "20261128-120000-echo" / "jobs" / "0-train"
    path.mkdir(parents=True)
    return JobDir(path)


@pytest.mark.parametrize("ahead_s", [-420.0, 420.0, -86400.0])
def test_a_node_with_another_clock_ends_the_job_at_the_same_moment(
    job: JobDir, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    real = time.time
    deadline.write(job, real() + 100.0)  # by the host
    monkeypatch.setattr(time, "time", lambda: real() + ahead_s)  # on the node
    told = DeadlineReader(job).read()
    assert told is not None
    assert told - time.time() == pytest.approx(100.0, abs=2.0)


def test_clocks_that_agree_leave_the_time_as_it_is(job: JobDir) -> None:
    time_s = time.time() + 100.0
    deadline.write(job, time_s)
    assert DeadlineReader(job).read() == time_s


def test_the_last_good_record_counts(job: JobDir) -> None:
    reader = DeadlineReader(job)
    assert reader.read() is None
    files.replace_json(job.deadline, {"time_s": 5000.0})  # of version 0.1.0
    assert reader.read() == 5000.0
    job.deadline.write_text("{")
    assert reader.read() == 5000.0
    deadline.write(job, 6000.0)
    assert reader.read() == 6000.0
    job.deadline.unlink()
    assert reader.read() == 6000.0


def test_a_time_without_the_clock_of_its_machine_is_taken_as_it_is() -> None:
    assert here_s(5000.0, None) == 5000.0
    assert here_s(5000.0, time.time(), float("inf")) == 5000.0
    assert here_s(5000.0, time.time() - 600.0) == pytest.approx(5600.0, abs=1.0)
    assert here_s(5000.0, time.time() - 610.0, ago_s=10.0) == pytest.approx(5600.0, abs=1.0)
