"""The host of a job: the wait for nodes, and the jobs it submits."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from rlnb_dask import host
from rlnb_dask.queues.slurm import OwnJob

import rlnb
from rlnb.launchers import DetachedJob, Launcher


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DetachedJob:
    """A job of a training, without a result."""
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    folder = run.jobs[0].folder
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(run.jobs[0].handle["pid"]).wait(60)  # its exit writes a result if there is none
    folder.result.unlink()
    return DetachedJob(folder.path)


def test_a_node_lost_before_all_nodes_are_ready_ends_the_wait(job: DetachedJob) -> None:
    answers = iter([{"tcp://a:1": {}, "tcp://b:1": {}}, {"tcp://a:1": {}}])
    client = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": next(answers)})
    owner = host.Host(job, rlnb.pbs(nodes=3, walltime="01:00:00"))
    owner._nodes = 3
    with pytest.raises(host.Ended):
        owner._wait_for_nodes(client)
    result = DetachedJob(job.path).result
    assert result is not None
    assert "a node was lost before all nodes were ready" in result.error
    assert json.loads((job.path / "waits.json").read_text())["what"] == "1 of 3 nodes are ready"
    assert result.values == {"interrupted": True}


def test_nodes_that_wait_for_others_are_given_back(job: DetachedJob) -> None:
    client = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": {"tcp://a:1": {}}})
    owner = host.Host(job, rlnb.pbs(nodes=2, walltime="01:00:00", patience_s=0.5))
    owner._nodes = 2
    with pytest.raises(host.Ended):
        owner._wait_for_nodes(client)
    result = DetachedJob(job.path).result
    assert result is not None
    assert result.error == "only 1 of 2 nodes came in time, and were given back to the queue"
    assert result.interrupted, "so that the training is submitted again"
    assert DetachedJob(job.path).times_given_back == 1
    assert 0.8 <= owner._patience_s() <= 1.2, "twice the patience"
    many: Any = SimpleNamespace(command=job.command, times_given_back=2000)
    assert host.Host(many, owner._launcher)._patience_s() <= 0.5 * 8 * 1.2, "it does not grow without an end"
    assert host.Host(job, rlnb.slurm(nodes=2, walltime="01:00:00"))._patience_s() == math.inf
    assert host.Host(job, rlnb.pbs(nodes=2, walltime="01:00:00", patience_s=None))._patience_s() == math.inf


SLURM = {
    "sbatch": "echo Submitted batch job 7",
    "squeue": "echo '7 PENDING (Resources)'",
    "scontrol": "echo JobId=7 JobState=$(cat $(dirname $0)/state)",
    "scancel": "echo CANCELLED > $(dirname $0)/state",
}
"""Commands of a Slurm with a job that waits until it is cancelled."""


@pytest.mark.parametrize(("state", "resumes"), [("PENDING", True), ("CANCELLED", False)])
def test_a_job_that_the_host_itself_takes_out_of_the_queue_is_not_cancelled_by_a_person(
    job: DetachedJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, resumes: bool
) -> None:
    for name, script in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "state").write_text(state)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00"), OwnJob("9", time.time() + host.LEAVE_S + 4.0))
    assert owner.run() is resumes
    assert owner._cluster._ids == ["7"]
    assert (tmp_path / "state").read_text().strip() == "CANCELLED", "the host has released the node"
    result = job.result
    assert result is not None
    assert "the job of the host has reached its walltime" in result.error
    assert 'host_directives=["--time=' in result.error


@pytest.mark.parametrize(("start_s", "values"), [(0.0, {}), (-700.0, {"interrupted": True, "given_back": True})])
def test_the_end_of_a_host_that_waited_for_long_is_no_interruption(
    job: DetachedJob, start_s: float, values: dict[str, bool]
) -> None:
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00"), OwnJob("9", time.time()))
    owner._start_s += start_s
    with pytest.raises(host.Ended):
        owner._beat_or_stop()
    result = job.result
    assert result is not None
    assert result.values == values


@pytest.mark.parametrize("launcher", [rlnb.slurm(nodes=2, walltime="01:00:00"), rlnb.dask("tls://a:1", nodes=2)])
def test_the_launcher_of_a_job_is_rebuilt_from_its_manifest(launcher: Launcher) -> None:
    manifest = SimpleNamespace(launcher=launcher.name, launcher_settings=launcher.settings)
    copy = host.launcher_of(SimpleNamespace(manifest=manifest))  # type: ignore[arg-type]
    assert type(copy) is type(launcher)
    assert copy.settings == launcher.settings


def test_node_0_is_the_queues_first() -> None:
    names = ["SLURMCluster-0-10", "SLURMCluster-0-9", "SLURMCluster-0-0"]
    assert sorted(names, key=host._number) == ["SLURMCluster-0-0", "SLURMCluster-0-9", "SLURMCluster-0-10"]


def test_the_agents_follow_the_walltime_of_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\ncat $(dirname $0)/answer\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ends: list[float] = []
    job: Any = SimpleNamespace(command=SimpleNamespace(nodes=1), end_by=ends.append)
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00", grace_s=60))
    owner._cluster._ids.append("7")
    for end in (5000, 5000, 9000, 4000):
        (tmp_path / "answer").write_text(f"JobId=7 JobState=RUNNING EndTime={end}\n")
        owner._follow_the_walltime()
        owner._follow_the_walltime()  # within a minute, Slurm is not asked again
        owner._followed_s = float("-inf")
    assert ends == [4940, 8940, 3940]
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00", grace_s=60), OwnJob("9", 4000.0))
    owner._cluster._ids.append("7")
    (tmp_path / "answer").write_text("JobId=7 JobState=RUNNING EndTime=9000\n")
    owner._follow_the_walltime()
    assert ends[-1] == 4000 - host.LEAVE_S - 60, "the host's own job ends first"
    assert owner.ends_the_training
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00", grace_s=60), OwnJob("9", 99000.0))
    owner._cluster._ids.append("7")
    owner._follow_the_walltime()
    assert not owner.ends_the_training


@pytest.mark.parametrize(
    ("cause", "outcome", "goes_on"), [("", "cancelled", False), (" DUE TO PREEMPTION", "failed", True)]
)
def test_a_host_whose_own_job_is_ended_writes_the_result_and_releases_the_nodes(
    job: DetachedJob,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cause: str,
    outcome: str,
    goes_on: bool,
) -> None:
    for name, script in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "state").write_text("PENDING")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (job.path / "host.log").write_text(
        f"slurmstepd: error: *** JOB 9 ON n CANCELLED AT 2026-11-28T12:00:00{cause} ***\n"
    )
    owner = host.Host(job, rlnb.slurm(walltime="01:00:00", host="job"), OwnJob("9", time.time() + 1000.0))
    before = signal.signal(signal.SIGTERM, owner.revoke)

    def end() -> None:
        while not owner._cluster._ids:  # until the training's own job is in the queue
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    try:
        assert owner.run() is goes_on
    finally:
        signal.signal(signal.SIGTERM, before)
    result = job.result
    assert result is not None
    assert (result.outcome, result.interrupted) == (outcome, goes_on)
    assert result.error.startswith("Slurm's job 9, in which the host of this training ran, was ")
    assert (tmp_path / "state").read_text().strip() == "CANCELLED", "the host has released the node"
