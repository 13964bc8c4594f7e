"""Why a pod does not take part in a job."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from rlnb.records import incidents
from rlnb.records.layout import JobDir, RunDir


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
