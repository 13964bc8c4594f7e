"""The restarts of an interrupted training, with the cause of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.records.incidents import Restart
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.record import JobRecord
from rlnb.spec import Job, Result
from rlnb.storage import files


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
