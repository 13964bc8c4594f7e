"""Trainings on a real OAR: start, refusal, a job that ends at once, and one that is deleted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import LEAVE_S, echo, processes, wait_until

import rlnb

NAMED_S = 60.0
"""Seconds within which the end of a job must be named. OAR's scheduler takes about five to start one."""
WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def failure(run: rlnb.Run) -> str:
    """Wait until a run has failed, and return its error."""
    with pytest.raises(rlnb.RunError) as raised:
        run.wait(NAMED_S)
    return str(raised.value)


def test_a_training_on_two_nodes_completes_and_leaves_nothing(oar: Any, clean: Path) -> None:
    run = echo(rlnb.oar(nodes=2, walltime=WALLTIME), 5)
    assert run.wait(90).state == "completed"
    assert len(run.jobs[-1].folder.hosts()) == 2
    wait_until(lambda: not processes(run) and not oar.jobs(), LEAVE_S)


def test_the_end_of_a_job_and_the_refusal_of_another_are_named(oar: Any, clean: Path) -> None:
    quiet = echo(rlnb.oar(walltime=WALLTIME, prologue=["exit 3"]))
    refused = echo(rlnb.oar(walltime=WALLTIME, gpus_per_node=1, cpus_per_node=1), device="cpu")
    deleted = echo(rlnb.oar(walltime=WALLTIME))
    assert 'column "gpu" does not exist' in failure(refused)
    error = failure(quiet)
    assert "is done (exit status 3)" in error
    assert "The prologue failed on" in error
    wait_until(lambda: deleted.state == "running", NAMED_S)
    (number,) = json.loads(deleted.jobs[-1].folder.submitted.read_text())["jobs"]
    subprocess.run(["oardel", number], check=True, capture_output=True)
    assert f"OAR's job {number} is deleted from the queue (oardel)" in failure(deleted)
    assert [len(run.jobs) for run in (quiet, refused, deleted)] == [1, 1, 1]
    wait_until(lambda: not oar.jobs(), LEAVE_S)
