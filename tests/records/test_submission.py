"""The entry of a job in its cluster's queue."""

from __future__ import annotations

from pathlib import Path

from rlnb import HostedJob
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord, Submission


def test_the_last_entry_that_a_host_records_is_kept(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    assert JobRecord(job, "slurm").submission == Submission(), "before the job is in the queue"
    HostedJob(job.path).note(queue="slurm", jobs=["17"])
    HostedJob(job.path).note(queue="slurm", jobs=["17", "18"], dashboard=8787)
    assert JobRecord(job, "slurm").submission == Submission(queue="slurm", jobs=("17", "18"), dashboard=8787)


def test_an_entry_of_version_0_1_0_without_dashboard_and_with_other_fields_is_read(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "0-train")
    job.path.mkdir()
    job.submitted.write_text('{"queue": "pbs", "jobs": [3], "host": "login1"}')
    assert JobRecord(job, "pbs").submission == Submission(queue="pbs", jobs=("3",))
