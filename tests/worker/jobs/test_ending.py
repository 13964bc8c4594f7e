"""The end of a training: its summary and its result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import rlnb
from rlnb.records.layout import JobDir
from rlnb.records.record import RunRecord
from rlnb.records.summary import points_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.worker.jobs.job import work
from rlnb.worker.jobs.train import end_training

WAIT_S = 60.0


def last_job(run: rlnb.Run) -> JobDir:
    return run.jobs[-1].folder


def is_believed(run: rlnb.Run) -> bool:
    """Return whether a list believes the summary of a run's newest training."""
    summary = last_job(run).summary
    if not summary.exists():
        return False
    data = json.loads(summary.read_text())
    (tag, *_), *_ = data["points"]
    summary.write_text(json.dumps({**data, "points": [[tag, "", 2, -7.5]]}))
    record = RunRecord(run.path)
    return record.newest(run.state).last(tag) == -7.5 and record.metrics.last(tag) != -7.5


@pytest.mark.parametrize("how", ["completed", "failed", "resumed"])
def test_a_training_leaves_a_summary_that_lists_believe(root: Path, how: str) -> None:
    agent = {"crash_at": 2} if how == "failed" else {}
    run = rlnb.train("Echo", library="echo", max_iterations=3, agent=agent)
    if how == "failed":
        with pytest.raises(rlnb.RunError):
            run.wait(WAIT_S)
    else:
        run.wait(WAIT_S)
    if how == "resumed":
        run.resume(max_iterations=6).wait(WAIT_S)
        assert len(run.jobs) == 2
    text = last_job(run).summary.read_text()
    assert is_believed(run)
    event_file = next(path for path in run.record.folder.event_files())
    os.utime(event_file)  # what was believed in this process is forgotten
    newest = RunRecord(run.path).newest(run.state)
    points = {tag: value for tag, _, _, value in json.loads(text)["points"]}
    assert points == {tag: newest.last(tag) for tag in newest.tags}
    assert {name: newest.last(name) for name in newest.names} == {n: run.metrics.last(n) for n in run.metrics.names}
    assert newest.iteration == run.metrics.iteration


def test_nothing_is_written_after_the_result(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(WAIT_S)
    job = last_job(run)
    assert job.summary.stat().st_mtime_ns <= job.result.stat().st_mtime_ns


def test_a_training_without_a_manifest_has_a_result(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    with pytest.raises(rlnb.RlnbError, match="Manifest"):
        work("train", job.path)
    assert files.read_json(job.result) is not None


def test_a_result_that_exists_stays_and_so_does_its_summary(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.result, Result(outcome="completed", ended="2026-01-01T00:00:00+00:00"))
    end_training(job, Result(outcome="failed", ended="2026-01-01T00:00:00+00:00"))
    assert (files.read_json(job.result) or {})["outcome"] == "completed"
    assert not job.summary.exists()
    assert points_of(tmp_path / "logs", {}, job.summary) == []
