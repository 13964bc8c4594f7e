"""Trainings on a real Grid Engine: start, refusal, a job that ends at once, cancellation, and interruptions."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import LEAVE_S, echo, processes, wait_until

import rlnb
from rlnb.testing import LauncherConformance

NAMED_S = 30.0
"""Seconds within which a job that ends at once must be named."""
WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def one_node(**settings: Any) -> Any:
    return rlnb.sge(walltime=WALLTIME, **settings)


def running(run: rlnb.Run, iterations: int = 3) -> rlnb.Run:
    """Wait until a run has trained some iterations."""
    wait_until(lambda: run.state not in ("queued", "starting"), 60)
    wait_until(lambda: run.state in ("completed", "failed") or run.progress[0] >= iterations, 60)
    assert run.state == "running", run.logs()
    return run


def ids(run: rlnb.Run) -> list[str]:
    """Return the ids of the jobs of a run's latest submission."""
    wait_until(run.jobs[-1].folder.submitted.exists, 30)
    return list(json.loads(run.jobs[-1].folder.submitted.read_text())["jobs"])


def failure(run: rlnb.Run) -> str:
    """Wait until a run has failed, and return its error."""
    with pytest.raises(rlnb.RunError) as raised:
        run.wait(NAMED_S)
    return str(raised.value)


def test_a_job_that_ends_at_once_is_named_with_its_own_last_line(sge: Any, clean: Path) -> None:
    begun = time.monotonic()
    missing, prologue = echo(one_node(python="/nowhere/python")), echo(one_node(prologue=["module load cuda"]))
    quiet = echo(one_node(prologue=["exit 3"]))
    assert "/nowhere/python: No such file or directory" in failure(missing)
    assert "The prologue failed on" in failure(prologue)
    assert "status 127: module load cuda" in failure(prologue)
    assert "status 3: exit 3" in failure(quiet)
    assert time.monotonic() - begun < NAMED_S
    for run in (missing, prologue, quiet):
        assert len(run.jobs) == 1, "a further job would end in the same way"
    assert f"Grid Engine's job {ids(quiet)[0]} is done (exit status 3)" in failure(quiet)


def test_a_job_in_an_error_state_is_named_with_its_cause(sge: Any, clean: Path) -> None:
    run = echo(one_node(directives=["-wd /nowhere"]))
    assert "stuck in the queue (error: can't chdir to /nowhere: No such file or directory)" in failure(run)
    wait_until(lambda: not sge.jobs(), 20)
    assert len(run.jobs) == 1


def test_a_job_that_grid_engine_would_refuse_is_refused_before_anything_is_written(sge: Any, clean: Path) -> None:
    for settings, objection in (
        ({"partition": "nowhere"}, 'job requests unknown queue "nowhere"'),
        ({"gpus_per_node": 1, "cpus_per_node": 1}, 'unknown resource "gpu"'),
        ({"account": "rovers"}, 'the requested project "rovers" does not exist'),
    ):
        with pytest.raises(rlnb.CheckError, match=f"Grid Engine would refuse this job: .*{objection}"):
            echo(one_node(**settings))
    assert not list(clean.glob("runs/*"))


def test_a_refusal_at_the_submission_itself_is_the_cause(
    sge: Any, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlnb_dask.queues.sge.Sge.refusal", lambda self: None)
    run = echo(one_node(partition="nowhere"))
    assert 'job requests unknown queue "nowhere"' in failure(run)
    log = run.jobs[-1].folder.path / "host.log"
    wait_until(lambda: not processes(run), 20)
    assert "Traceback" not in log.read_text()


def test_a_waiting_job_says_why_and_its_deletion_ends_the_run(sge: Any, clean: Path) -> None:
    sge.set_enabled(False)
    try:
        run = echo(one_node())
        wait_until(lambda: "because it is disabled" in run.logs(), NAMED_S)
        assert run.state == "queued"
        subprocess.run(["qdel", *ids(run)], check=True, capture_output=True)
        assert "no longer in the queue" in failure(run)
        assert len(run.jobs) == 1
    finally:
        sge.set_enabled(True)


def test_a_training_on_two_nodes_continues_after_one_of_its_jobs_is_deleted(sge: Any, clean: Path) -> None:
    run = running(echo(one_node(nodes=2), 100), iterations=25)
    subprocess.run(["qdel", ids(run)[1]], check=True, capture_output=True)
    assert run.wait(120).state == "completed"
    first, second = run.jobs
    assert first.result is not None
    assert second.started is not None
    assert "is lost" in first.result.error
    assert second.started.first_iteration > 0
    wait_until(lambda: not processes(run) and not sge.jobs(), LEAVE_S)


@pytest.mark.usefixtures("sge")
class TestSge(LauncherConformance):
    launcher = "sge"
    settings: dict[str, Any] = {"walltime": WALLTIME}
    one_at_a_time: dict[str, Any] = {"directives": ["-pe smp 4"]}
    cut_short: dict[str, Any] = {"walltime": "00:00:12", "grace_s": 2, "max_restarts": 0}
