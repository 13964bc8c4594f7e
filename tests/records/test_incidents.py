"""Tests of rlnb.records.incidents."""

from __future__ import annotations

import datetime
import json
import logging
import os
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rlnb
from rlnb.records import incidents
from rlnb.records.incidents import (
    MOST_TEXT,
    WAITS_STALE_AFTER_S,
    Alert,
    Restart,
    Waits,
    WaitsWriter,
    alerts_of,
    read_waits,
    write_alert,
)
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.record import JobRecord
from rlnb.reports.sections import summary
from rlnb.spec import Job, Result
from rlnb.storage import files

FIRST = Alert(rule="reward < 5", what="reward < 5: reward is 3", time="2026-01-01T00:00:02+00:00", iteration=7)
SECOND = Alert(rule="ended", what="completed", time="2026-01-01T00:00:01+00:00")


def test_alerts_are_read_in_order_of_time(tmp_path: Path) -> None:
    jobs = [RunDir(tmp_path).next_job("train") for _ in range(2)]
    assert alerts_of(jobs) == []
    assert write_alert(jobs[0], FIRST)
    assert write_alert(jobs[1], SECOND)
    assert alerts_of(jobs) == [SECOND, FIRST]


def test_a_rule_alerts_once_in_a_job(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    job = run.next_job("train")
    assert write_alert(job, FIRST)
    assert not write_alert(job, FIRST)
    assert write_alert(job, SECOND)
    assert write_alert(run.next_job("train"), FIRST)
    assert len(alerts_of([job])) == 2


def test_one_of_many_writers_wins(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            job = RunDir(tmp_path).next_job("train")
            barrier = threading.Barrier(8)

            def race(job: JobDir = job, barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                return write_alert(job, FIRST)

            assert sum(future.result() for future in [pool.submit(race) for _ in range(8)]) == 1
            assert alerts_of([job]) == [FIRST]


def test_a_list_of_runs_sees_that_an_ended_run_has_an_alert(tmp_path: Path) -> None:
    job = RunDir(tmp_path).next_job("train")
    write_alert(job, SECOND)
    os.utime(jobs := job.path.parent, (0, 0))
    assert write_alert(job, FIRST)
    assert jobs.stat().st_mtime > 0


def test_a_damaged_alert_is_skipped(tmp_path: Path) -> None:
    job = RunDir(tmp_path).next_job("train")
    write_alert(job, FIRST)
    (job.alerts / "7.json").write_text('{"rule": 3}')
    assert alerts_of([job]) == [FIRST]


def test_alerts_are_shown_where_the_run_is(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    assert "alert" not in summary([run])
    write_alert(run.jobs[0].folder, FIRST)
    assert run.alerts == [FIRST]
    assert "reward &lt; 5: reward is 3 (iteration 7)" in summary([run])
    assert "reward &lt; 5: reward is 3" in run._repr_html_()


# -- refusals --------------------------------------------------------------------------------------------------------


def job_in(folder: Path) -> JobDir:
    return RunDir(folder).next_job("train")


def test_the_reason_of_each_pod_is_listed(tmp_path: Path) -> None:
    job, host = job_in(tmp_path), socket.gethostname()
    incidents.write_refusal(job, "RANK is not set.", None)
    incidents.write_refusal(job, "too few GPUs", 1)
    assert sorted(map(str, incidents.refusals_of(job))) == sorted(
        [f"{host} does not start: RANK is not set.", f"node 1 ({host}) does not start: too few GPUs"]
    )


def test_a_pod_that_is_started_again_replaces_its_reason(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for error in ("first", "second", "second"):
        incidents.write_refusal(job, error, 1)
    assert [refusal.error for refusal in incidents.refusals_of(job)] == ["second"]


def test_the_reason_of_a_node_that_has_started_since_is_over(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    incidents.write_refusal(job, "too few GPUs", 1)
    job.running(1).touch()
    later = time.time() + 1
    os.utime(job.running(1), (later, later))
    assert not incidents.refusals_of(job)


def test_a_damaged_record_is_skipped(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    job.refusal("node1").write_text("{")
    incidents.write_refusal(job, "too few GPUs", 2)
    assert [refusal.node for refusal in incidents.refusals_of(job)] == [2]


# -- restarts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def jobs(tmp_path: Path) -> list[JobDir]:
    """Two trainings, of which the second is a restart."""
    run = RunDir(tmp_path)
    first = run.next_job("train", lambda _: {"job.json": Job(kind="train")})
    again = Job(kind="train", after=first.path.name, restart=2, max_restarts=3)
    return [first, run.next_job("train", lambda _: {"job.json": again})]


def restart_of(job: JobDir) -> Restart | None:
    return JobRecord(job, "slurm").restart


def test_a_restart_has_its_number_and_its_cause(jobs: list[JobDir]) -> None:
    first, second = jobs
    files.write_once(first.result, Result(outcome="failed", error="node 1 (gpu07) is lost"))
    restart = restart_of(second)
    assert restart == Restart(number=2, most=3, cause="node 1 (gpu07) is lost")
    assert str(restart) == "restart 2 of 3 after: node 1 (gpu07) is lost"
    assert restart_of(first) is None, "a user started it"


@pytest.mark.parametrize("damage", ["{", "[]", '{"outcome": "failed", "error": 7}'])
def test_a_restart_after_a_job_with_an_unreadable_result_has_no_cause(jobs: list[JobDir], damage: str) -> None:
    jobs[0].result.write_text(damage)
    assert str(restart_of(jobs[1])) == "restart 2 of 3"


def test_a_job_without_a_readable_record_is_no_restart(jobs: list[JobDir]) -> None:
    jobs[1].job.write_text('{"kind": "train", "restart": "two"}')
    assert restart_of(jobs[1]) is None
    jobs[1].job.unlink()
    assert restart_of(jobs[1]) is None


# -- waits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    """The folder of a job whose host lives."""
    folder = JobDir(tmp_path / "jobs" / "0-train")
    folder.path.mkdir(parents=True)
    folder.host_alive.touch()
    return folder


def test_a_record_is_written_only_when_the_reason_changes(job: JobDir) -> None:
    writer = WaitsWriter(job)
    writer.write("")
    assert not job.waits.exists()
    writer.write("PENDING (Priority)")
    first, inode = read_waits(job), job.waits.stat().st_ino
    writer.write("PENDING (Priority)")
    assert job.waits.stat().st_ino == inode, "the file was not written again"
    writer.write("PENDING\n(Resources)")
    second = read_waits(job)
    assert first is not None
    assert second == Waits(what="PENDING (Resources)", since=first.since), "the wait began with the first reason"
    assert [path.name for path in job.path.iterdir() if path.name.startswith(".")] == [], "no draft is left"
    writer.write("")
    assert (job.waits.exists(), read_waits(job)) == (False, None)


def test_the_record_of_a_dead_writer_does_not_count(job: JobDir) -> None:
    WaitsWriter(job).write("PENDING (Priority)")
    silent_s = job.host_alive.stat().st_mtime - WAITS_STALE_AFTER_S - 5.0
    os.utime(job.host_alive, (silent_s, silent_s))
    job.alive(1).touch()  # of another process of the job
    assert read_waits(job) is None
    WaitsWriter(job, node=1).write("waits for its turn", ["a", "b"])
    record = read_waits(job)
    assert record is not None
    assert (record.what, record.runs, record.node) == ("waits for its turn", ("a", "b"), 1)


def test_a_job_that_has_ended_does_not_wait(job: JobDir) -> None:
    WaitsWriter(job).write("PENDING (Priority)")
    assert JobRecord(job, "slurm").waits is not None
    job.result.write_text("{}")
    assert JobRecord(job, "slurm").waits is None


def test_a_damaged_record_is_skipped_and_named_once(job: JobDir, caplog: pytest.LogCaptureFixture) -> None:
    for text in ("[1]", '{"what": 1, "since": ""}', "{"):
        job.waits.write_text(text)
        with caplog.at_level(logging.WARNING):
            assert (read_waits(job), read_waits(job)) == (None, None)
        assert sum(str(job.waits) in message for message in caplog.messages) == 1
        caplog.clear()
    job.waits.write_text(json.dumps({"what": "x", "since": "yesterday", "later": 1}))
    record = read_waits(job)
    assert record is not None
    assert (record.what, record.seconds) == ("x", 0.0)


def test_a_reason_is_short_and_an_error_of_the_file_system_is_ignored(job: JobDir) -> None:
    writer = WaitsWriter(job)
    writer.write("x" * 9999)
    record = read_waits(job)
    assert record is not None
    assert len(record.what) == MOST_TEXT
    shutil.rmtree(job.path)
    writer.write("y")
    job.path.mkdir()
    job.host_alive.touch()
    writer.write("y")
    assert read_waits(job) is not None, "the next call tried again"


def test_the_length_of_a_wait_is_counted_from_its_begin() -> None:
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=12)
    assert 720.0 <= Waits(what="x", since=began.isoformat()).seconds < 730.0
    assert Waits(what="x", since="2999-01-01T00:00:00+00:00").seconds == 0.0, "the clocks of two machines differ"
    assert Waits(what="x", since="2020-01-01T00:00:00").seconds == 0.0, "a time without a zone"
