"""Trainings on a real Slurm with unfit nodes: a Prolog that fails, a wrong clock, another checkout of rlnb."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import wrong_clock
from runs_on_nodes import echo, processes, wait_until

import rlnb

WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

Break = Callable[..., None]


def one_node(**settings: Any) -> Any:
    return rlnb.slurm(walltime=WALLTIME, **settings)


def errors(run: rlnb.Run) -> list[str]:
    """Return the error of each job of a run that has ended."""
    return [job.result.error for job in run.jobs if job.result is not None]


def in_queue() -> str:
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout


def test_a_node_whose_prolog_fails_is_named_and_another_one_trains(clean: Path, unfit: Break) -> None:
    unfit(0)
    run = echo(one_node(max_restarts=0), 5).wait(120)
    assert run.state == "completed"
    first, _ = errors(run)
    number = run.jobs[0].submission.jobs[0]
    assert first == f"the queue gave too few nodes: Slurm's job {number} could not start (node0: Prolog error)."
    (restart,) = run.restarts
    assert str(restart) == f"restart 1 of 1 after: {first}"
    assert len(run.jobs) == 2
    assert not run.goodput().interruptions, "no training was interrupted"


def test_one_of_two_nodes_is_enough_to_end_the_job(clean: Path, unfit: Break) -> None:
    unfit(1)
    run = echo(one_node(nodes=2), 5).wait(120)
    assert "(node1: Prolog error)" in errors(run)[0]
    assert len(run.jobs) == 2


def test_if_no_node_is_fit_the_run_ends_and_the_nodes_are_named(clean: Path, unfit: Break) -> None:
    unfit(0, 1, 2)
    run = echo(one_node())
    with pytest.raises(rlnb.RunError, match=r"\(node1: Prolog error\)\.*\. Not continued: no training of it could"):
        run.wait(120)
    assert len(run.jobs) == 2
    wait_until(lambda: not in_queue() and not processes(run), 30)


def test_a_person_who_cancels_a_job_during_the_prolog_is_not_taken_for_a_node(clean: Path, unfit: Break) -> None:
    unfit(0, 1, 2, kind="slow")
    run = echo(one_node())
    wait_until(lambda: run.jobs[0].submission.jobs, 30)
    (number,) = run.jobs[0].submission.jobs
    wait_until(lambda: f"{number} " in in_queue() and "PD" not in in_queue(), 30)
    subprocess.run(["scancel", number], check=True)
    with pytest.raises(rlnb.RunError, match=rf"Slurm's job {number} was cancelled in the queue \(scancel\)"):
        run.wait(120)
    time.sleep(3.0)
    assert len(run.jobs) == 1
    wait_until(lambda: not in_queue(), 30)


def test_elements_of_an_array_that_a_node_could_not_start_go_on(clean: Path, unfit: Break) -> None:
    unfit(0)
    space = {"agent.goal": [0.1, 0.5]}
    sweep = rlnb.sweep(
        "Echo", library="echo", space=space, n_trials=2, max_iterations=3, launcher=one_node(), array=True
    )
    sweep.wait()
    assert [run.state for run in sweep.runs] == ["completed", "completed"]
    found = [error for run in sweep.runs for error in errors(run)]
    assert any("could not start (node0: Prolog error)" in error for error in found), found


def on_node(number: int, *lines: str) -> list[str]:
    """Return a prologue that runs shell lines on one node."""
    return [f'if [ "$SLURMD_NODENAME" = node{number} ]; then {"; ".join(lines)}; fi']


def exports(ahead_s: float, folder: Path) -> list[str]:
    return [f"export {name}={value}" for name, value in wrong_clock.variables(folder, ahead_s).items()]


@pytest.mark.parametrize(("ahead_s", "words"), [(-420.0, "7 min behind"), (420.0, "7 min ahead of")])
def test_a_node_whose_clock_is_minutes_away_trains_and_is_named(
    slurm: Any, clean: Path, ahead_s: float, words: str
) -> None:
    prologue = on_node(1, *exports(ahead_s, clean))
    run = echo(rlnb.slurm(nodes=2, walltime=WALLTIME, prologue=prologue), 10).wait(120)
    assert run.state == "completed"
    assert f"its clock is {words}" in run.logs(200)


def test_a_node_whose_clock_is_days_away_is_refused_by_name(slurm: Any, clean: Path) -> None:
    prologue = on_node(1, *exports(-3 * 86400.0, clean))
    run = echo(rlnb.slurm(nodes=2, walltime=WALLTIME, prologue=prologue), 10)
    with pytest.raises(rlnb.RunError, match=r"node 1 \(.*\): its clock is 3 days behind that of .*chrony"):
        run.wait(120)
    assert len(run.jobs) == 1


@pytest.mark.parametrize("ahead_s", [-420.0, 420.0])
def test_a_node_with_a_wrong_clock_stops_in_time_for_its_walltime(slurm: Any, clean: Path, ahead_s: float) -> None:
    launcher = rlnb.slurm(walltime="00:01:30", grace_s=40, prologue=exports(ahead_s, clean), max_restarts=1)
    run = echo(launcher)
    begun_s = time.monotonic()
    wait_until(lambda: run.jobs[0].result is not None, 120)
    result = run.jobs[0].result
    assert (result.outcome, result.error) == ("timeout", "stopped shortly before the end of the queue's walltime")
    assert 25.0 < time.monotonic() - begun_s < 90.0
    wait_until(lambda: len(run.jobs) == 2, 60)
    run.cancel()


def test_a_node_with_another_checkout_of_the_same_version_is_named(slurm: Any, clean: Path) -> None:
    copy = clean / "checkout"
    here = Path(rlnb.__file__).parent
    shutil.copytree(here, copy / "rlnb", ignore=shutil.ignore_patterns("__pycache__"))
    with open(copy / "rlnb" / "errors.py", "a") as file:
        file.write("\n# another checkout\n")
    prologue = on_node(1, f"export PYTHONPATH={copy}")
    run = echo(rlnb.slurm(nodes=2, walltime=WALLTIME, prologue=prologue), 10)
    with pytest.raises(rlnb.RunError, match=rf"node 1 \(.*\): the sources of rlnb in {copy}/rlnb are not those of the"):
        run.wait(120)


def test_the_nodes_of_a_host_that_is_gone_are_given_back_at_once(slurm: Any, clean: Path) -> None:
    subprocess.run(["scontrol", "update", "nodename=node[0-3]", "state=drain", "reason=test"], check=True)
    try:
        run = echo(rlnb.slurm(nodes=2, walltime=WALLTIME))
        job = run.jobs[-1].folder
        wait_until(lambda: job.submitted.exists() and job.host_alive.exists() and slurm.jobs(), 30)
        psutil.Process(run.jobs[-1].handle["pid"]).kill()
        wait_until(lambda: run.state == "lost", 20)
        os.utime(job.host_alive, (time.time() - 100.0,) * 2)
    finally:
        subprocess.run(["scontrol", "update", "nodename=node[0-3]", "state=resume"], check=True)
    wait_until(lambda: not slurm.jobs(), 30)
    with pytest.raises(rlnb.RunError, match=r"Its job \d+ has left the queue"):
        run.wait()


def test_scancel_of_the_hosts_job_ends_the_run_by_name_and_it_can_be_resumed(slurm: Any, clean: Path) -> None:
    run = echo(rlnb.slurm(walltime=WALLTIME, host="job", host_directives=["--mem=500M"]), 200)
    wait_until(lambda: run.checkpoints, 120)
    number = run.jobs[0].handle["slurm_job"]
    subprocess.run(["scancel", number], check=True)
    wait_until(lambda: run.state == "cancelled", 30)
    assert (
        run.reason
        == f"Slurm's job {number}, in which the host of this training ran, was cancelled in the queue (scancel)"
    )
    wait_until(lambda: not slurm.jobs() and not processes(run), 60)
    done = run.progress[0]
    assert run.resume().wait(180).state == "completed"
    assert run.progress[0] == 200 > done
