"""Why a job waits: written only when it changes, and read only while its writer lives."""

from __future__ import annotations

import datetime
import json
import logging
import os
import shutil
from pathlib import Path

import pytest

from rlnb.records.incidents import MOST_TEXT, WAITS_STALE_AFTER_S, Waits, WaitsWriter, read_waits
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord


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
