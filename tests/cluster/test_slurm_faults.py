"""Trainings on a real Slurm when the cluster itself is in trouble: nodes, controller, administrators and hosts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs_on_nodes import echo, processes, wait_until

import rlnb

WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def two_nodes(**settings: Any) -> Any:
    return rlnb.slurm(nodes=2, walltime=WALLTIME, **settings)


def scontrol(*argv: str) -> None:
    done = subprocess.run(["scontrol", *argv], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def drained(slurm: Any) -> Iterator[Any]:
    """Provide a function that drains nodes of Slurm, which are back afterwards."""
    yield lambda nodes: scontrol("update", f"nodename={nodes}", "state=drain", "reason=test")
    scontrol("update", "nodename=node[0-3]", "state=resume")
    wait_until(lambda: slurm.idle() == 4, 30)


def refusal(**settings: Any) -> str:
    problem = rlnb.slurm(walltime=WALLTIME, **settings).refusal()
    return problem.what if problem else ""


def test_drained_nodes_let_a_job_wait(drained: Any) -> None:
    drained("node[0-1]")
    assert refusal(nodes=3) == refusal(nodes=2) == ""
    drained("node[2-3]")
    assert refusal(nodes=2) == refusal(nodes=2, partition="first") == ""


def test_reserved_nodes_let_a_job_wait(slurm: Any) -> None:
    name, when = "reservationname=maintenance", ["starttime=now", "duration=60", "flags=maint"]
    scontrol("create", "reservation", name, *when, "nodes=ALL", "users=root")
    try:
        assert refusal(nodes=2) == ""
    finally:
        scontrol("delete", name)


def test_a_job_that_no_configured_nodes_fit_is_refused(slurm: Any) -> None:
    assert "4 of the 4 nodes of main are large enough for it" in refusal(nodes=5)
    assert "0 of the 4 nodes of main are large enough for it" in refusal(nodes=1, cpus_per_node=40)
    assert "0 of the 4 nodes of first" in refusal(nodes=1, memory_gib_per_node=900, partition="first")


def test_the_job_of_a_host_that_died_while_it_waited_leaves_the_queue(drained: Any, slurm: Any, clean: Path) -> None:
    drained("node[0-3]")
    run = echo(two_nodes())
    job = run.jobs[-1].folder
    wait_until(lambda: job.submitted.exists() and slurm.jobs(), 30)
    psutil.Process(run.jobs[-1].handle["pid"]).kill()
    wait_until(lambda: run.state == "lost", 20)
    (number,) = json.loads(job.submitted.read_text())["jobs"]
    with pytest.raises(rlnb.RunError, match=rf"job {number} is still in the queue: run.cancel\(\) takes it out"):
        run.wait()
    assert slurm.jobs() == [number]
    run.cancel()
    assert not slurm.jobs()
    assert not (job.path / ".tls").exists()
    assert run.state == "cancelled"


def test_a_submission_waits_for_a_controller_that_is_away(slurm: Any, clean: Path) -> None:
    run = echo(two_nodes(), 10)
    slurm.stop_controller()  # the host needs a second until it submits the job
    try:
        wait_until(lambda: "The submission is tried again" in run.logs(), 60)
        assert run.state == "queued"
    finally:
        slurm.start_controller()
    assert run.wait(120).state == "completed"
    assert len(run.jobs) == 1


def test_a_host_is_a_job_of_its_own(slurm: Any, clean: Path) -> None:
    launcher = two_nodes(host="job", host_directives=["--mem=500M", "--time=00:20:00"])
    run = echo(launcher, 5)
    assert list(run.jobs[0].handle) == ["slurm_job"]
    assert run.wait(90).state == "completed"
    assert len(run.jobs[0].folder.hosts()) == 2
    wait_until(lambda: not processes(run) and not slurm.jobs(), 60)


def test_a_host_that_waits_as_a_job_can_be_cancelled(drained: Any, slurm: Any, clean: Path) -> None:
    drained("node[0-3]")
    run = echo(two_nodes(host="job"))
    assert run.state == "queued"
    assert len(slurm.jobs()) == 1
    run.cancel()
    wait_until(lambda: run.state == "cancelled", 15)
    assert not slurm.jobs()
