"""Arrays on a real Slurm and a real Grid Engine: one job for all trials of a sweep, its limit and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs_on_nodes import processes, wait_until

import rlnb
from rlnb.results import Sweep

optuna = pytest.importorskip("optuna")

TRIALS, AT_ONCE = 40, 4
CANCEL_S = 5.0
WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def array(name: str, n_trials: int, iterations: int, launcher: Any, parallel: int | None = None) -> Sweep:
    """Start a sweep of trainings without a simulator, with a tenth of a second per iteration."""
    return rlnb.sweep(
        "Echo",
        "echo",
        space={"agent.goal": (0.5, 2.0)},
        n_trials=n_trials,
        name=name,
        parallel=parallel,
        max_iterations=iterations,
        agent={"iteration_s": 0.1},
        pruner=optuna.pruners.NopPruner(),
        launcher=launcher,
        array=True,
    )


def states(sweep: Sweep) -> list[str]:
    return [run.state for run in sweep.runs]


def running(sweep: Sweep, n_trials: int, count: int) -> None:
    """Wait until all trials have their runs, and some of them train."""
    wait_until(lambda: len(sweep.runs) == n_trials and states(sweep).count("running") >= count, 60)


def arrays(sweep: Sweep) -> set[str]:
    """Return the ids of the jobs of Slurm whose elements are the runs."""
    return {name.partition("_")[0] for run in sweep.runs for job in run.jobs for name in job.submission.jobs}


def host(sweep: Sweep) -> int:
    """Return the id of the process that hosts the array."""
    (pid,) = {run.jobs[0].handle["pid"] for run in sweep.runs}
    return int(pid)


def hosted(sweep: Sweep) -> bool:
    """Return whether the process that hosts the array still runs."""
    try:
        return psutil.Process(host(sweep)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def most_at_once(sweep: Sweep) -> int:
    """Return the largest number of trainings that ran at once, from the first to the last record of each."""
    events = []
    for run in sweep.runs:
        claim = run.jobs[0].folder.running().stat().st_mtime
        end_s = datetime.fromisoformat(run.result.ended).timestamp()
        events += [(claim, 1), (end_s, -1)]
    count = most = 0
    for _, change in sorted(events):
        count += change
        most = max(most, count)
    return most


def test_forty_trials_are_one_array_job_with_at_most_four_at_once(slurm: Any, clean: Path) -> None:
    sweep = array("forty", TRIALS, 3, rlnb.slurm(walltime=WALLTIME), AT_ONCE).wait(220)
    assert states(sweep) == ["completed"] * TRIALS
    assert len(arrays(sweep)) == 1
    assert 1 < most_at_once(sweep) <= AT_ONCE
    assert sweep.best.manifest.agent["goal"] == max(run.manifest.agent["goal"] for run in sweep.runs)
    wait_until(lambda: not hosted(sweep) and not slurm.jobs(), 20)


def test_a_cancelled_sweep_has_left_the_queue_within_five_seconds(slurm: Any, clean: Path) -> None:
    sweep = array("cancelled", TRIALS, 600, rlnb.slurm(walltime=WALLTIME), AT_ONCE)
    running(sweep, TRIALS, AT_ONCE)
    one = next(run for run in sweep.runs if run.state == "queued").cancel()
    wait_until(lambda: one.state == "cancelled", CANCEL_S)
    assert states(sweep).count("cancelled") == 1
    begun = time.monotonic()
    sweep.cancel()
    wait_until(lambda: set(states(sweep)) == {"cancelled"}, CANCEL_S - (time.monotonic() - begun))
    wait_until(lambda: not slurm.jobs() and not any(processes(run) for run in sweep.runs), 20)
    wait_until(lambda: not hosted(sweep), 20)


def test_an_element_that_dies_at_once_is_named_with_its_last_line(slurm: Any, clean: Path) -> None:
    launcher = rlnb.slurm(walltime=WALLTIME, prologue=["echo no such module >&2; exit 3"])
    sweep = array("dead", 2, 10, launcher)
    wait_until(lambda: states(sweep) == ["failed", "failed"], 30)
    for run in sweep.runs:
        (name,) = run.jobs[0].submission.jobs
        text = f"no agent was started: Slurm's job {name} is FAILED. The last line of its output: "
        assert run.result.error == f"{text}The prologue failed on {os.uname().nodename}, status 3: exit 3"
        assert "no such module" in run.logs()
        assert len(run.jobs) == 1, "a job that dies at once is not tried again"


def test_an_array_of_grid_engine_names_the_element_that_dies_and_runs_the_others(sge: Any, clean: Path) -> None:
    prologue = ['if [ "$SGE_TASK_ID" = 2 ]; then echo no such module >&2; exit 3; fi']
    sweep = array("grid", 3, 3, rlnb.sge(walltime=WALLTIME, prologue=prologue), 2)
    wait_until(lambda: sorted(states(sweep)) == ["completed", "completed", "failed"], 90)
    (dead,) = (run for run in sweep.runs if run.state == "failed")
    (name,) = dead.jobs[0].submission.jobs
    assert name.endswith(".2")
    assert f"no agent was started: Grid Engine's job {name} is done (exit status 3)" in dead.result.error
    assert "no such module" in dead.logs()
    assert len(dead.jobs) == 1, "a job that dies at once is not tried again"
    assert len({run.jobs[0].submission.jobs[0].partition(".")[0] for run in sweep.runs}) == 1
    wait_until(lambda: not hosted(sweep) and not sge.jobs(), 30)


def test_elements_that_the_queue_took_away_go_on_in_one_further_array(slurm: Any, clean: Path) -> None:
    sweep = array("interrupted", 2, 60, rlnb.slurm(walltime=WALLTIME))
    running(sweep, 2, 2)
    wait_until(lambda: min(run.progress[0] for run in sweep.runs) >= 5, 30)
    urgent = ["sbatch", "--partition=first", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=sleep 5"]
    subprocess.run(urgent, check=True, capture_output=True)
    wait_until(lambda: all(len(run.jobs) == 2 for run in sweep.runs), 40)
    for run in sweep.runs:
        assert "preempted" in run.jobs[0].result.error
        assert run.state in ("queued", "starting", "running")
    sweep.wait(120)
    assert states(sweep) == ["completed", "completed"]
    assert len(arrays(sweep)) == 2
    for run in sweep.runs:
        assert [round(step) for step in run.metrics["reward"].iterations] == list(range(60)), "one curve of both jobs"


def test_without_their_host_elements_go_on_and_a_waiting_one_can_be_cancelled(slurm: Any, clean: Path) -> None:
    sweep = array("alone", 3, 80, rlnb.slurm(walltime=WALLTIME), 1)
    running(sweep, 3, 1)
    os.kill(host(sweep), signal.SIGKILL)
    time.sleep(6.0)
    assert sorted(states(sweep)) == ["queued", "queued", "running"], "the queue still has them"
    waiting = next(run for run in sweep.runs if run.state == "queued").cancel()
    wait_until(lambda: waiting.state == "cancelled", 20)
    wait_until(lambda: sorted(states(sweep)) == ["cancelled", "completed", "completed"], 90)
