"""The nodes of one job, as its queue reports them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rlnb_dask import clusters

import rlnb


def cluster(tmp_path: Path, launcher: Any, nodes: int = 1) -> tuple[clusters.Cluster, dict[str, object]]:
    """Return a cluster, and the dict in which its job records notes."""
    notes: dict[str, object] = {}
    job: Any = SimpleNamespace(path=tmp_path, note=lambda **facts: notes.update(facts))
    return clusters.Cluster(launcher, nodes, job), notes


def test_the_ids_of_all_jobs_are_noted_once_they_are_known(tmp_path: Path) -> None:
    nodes, notes = cluster(tmp_path, rlnb.pbs(walltime="01:00:00"), 2)
    nodes._ids.append("7")
    assert nodes.gone() == ""
    assert notes == {}
    nodes._ids.append("8")
    assert nodes.gone() == ""
    assert notes == {"queue": "pbs", "jobs": ["7", "8"]}


def test_a_refused_submission_gives_no_nodes_and_no_further_job(tmp_path: Path) -> None:
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    nodes._errors.append(RuntimeError("Command exited with 1:\nsbatch: error: invalid account\n"))
    assert nodes.gone() == "sbatch: error: invalid account"
    assert nodes.unwanted()


def test_a_job_that_the_queue_has_ended_is_reported_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in {"squeue": "", "scontrol": "JobId=7 JobState=TIMEOUT"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{line}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "rlnb-7.err").write_text("/nowhere/python: No such file or directory\nsrun: error: task 0: exit 2\n")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    nodes._ids.append("7")
    why = "Slurm's job 7 is TIMEOUT. The last line of its output: /nowhere/python: No such file or directory"
    assert nodes.gone() == why
    assert not nodes.unwanted(), "a new job may resume it"


def test_a_cluster_of_the_user_has_no_queue_to_ask(tmp_path: Path) -> None:
    nodes, _ = cluster(tmp_path, rlnb.dask("tls://a:1"))
    assert (nodes.gone(), nodes.why(), nodes.unwanted()) == ("", "", False)


def test_the_queue_is_asked_at_most_every_few_seconds_why_jobs_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\necho '7 SUSPENDED (None)'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nodes, _ = cluster(tmp_path, rlnb.slurm(walltime="01:00:00"))
    assert nodes.waits() == "", "not submitted yet"
    nodes._ids.append("7")
    assert [nodes.standstill() for _ in range(3)] == ["suspended"] * 3
    assert (nodes.gone(), nodes.waits()) == ("", "suspended")
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize("launcher", [rlnb.dask("tls://a:1"), rlnb.pbs(walltime="01:00:00")])
def test_a_queue_without_queries_knows_no_reason(tmp_path: Path, launcher: Any) -> None:
    nodes, _ = cluster(tmp_path, launcher)
    assert (nodes.waits(), nodes.standstill()) == ("", "")
