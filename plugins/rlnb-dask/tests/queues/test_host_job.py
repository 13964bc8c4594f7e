"""The host as a job of Slurm: its script, its handle and its problems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_dask.queues import host_job

import rlnb

SCRIPT = """#!/usr/bin/env bash
#SBATCH -J rlnb-host
#SBATCH -p gpu
#SBATCH -A robots
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2048M
#SBATCH --no-requeue
#SBATCH --partition=cpu
module load cuda
exec '/my env/bin/python' -P -m rlnb_dask.host '/runs/a b/jobs/0-train'
"""


def test_the_script_of_a_host() -> None:
    launcher = rlnb.slurm(
        walltime="01:00:00",
        partition="gpu",
        account="robots",
        python="/my env/bin/python",
        prologue="module load cuda",
        host="job",
        host_directives="--partition=cpu",
    )
    assert host_job.script(launcher, Path("/runs/a b/jobs/0-train")) == SCRIPT
    assert launcher.settings["host_directives"] == ["--partition=cpu"]


def test_a_wrong_host_is_a_problem(problems: Callable[..., str], commands: Callable[[str, str], None]) -> None:
    commands("sbatch", "true")
    resources = rlnb.Resources(device="cpu")
    assert problems(resources=resources, host="there") == "host='there' is neither 'here' nor 'job'."
    assert "host_directives have no effect" in problems(resources=resources, host_directives=["--mem=1G"])
    assert "not a single line" in problems(resources=resources, host="job", host_directives=["a\nb"])
    assert problems(resources=resources, host="job", host_directives=["--mem=1G"]) == ""


def test_a_host_that_slurm_refuses_is_an_error(tmp_path: Path, commands: Callable[[str, str], None]) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", host="job")
    commands("sbatch", "echo '7;cluster'")
    assert launcher.submit(None, tmp_path) == {"slurm_job": "7"}
    commands("sbatch", "echo 'invalid account' >&2; exit 1")
    with pytest.raises(rlnb.RlnbError, match="refused the job of the host: invalid account"):
        launcher.submit(None, tmp_path)


def test_a_host_lives_while_its_job_waits_or_runs(
    tmp_path: Path, commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_job, "ASK_S", 0.0)
    launcher, handle = rlnb.slurm(), {"slurm_job": "70"}
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert launcher.alive(handle, tmp_path) is None
    commands("squeue", "echo PENDING")
    assert launcher.alive(handle, tmp_path) is True
    commands("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert launcher.alive(handle, tmp_path) is True, "the last answer"
    commands("squeue", "echo COMPLETING")
    assert launcher.alive(handle, tmp_path) is False
    commands("squeue", "true")
    commands("scancel", f'echo "$@" >> {tmp_path}/calls')
    launcher.cancel(handle, tmp_path)
    assert (tmp_path / "calls").read_text() == "--state=PENDING 70\n"


def test_the_end_of_a_hosts_own_job_counts_only_for_a_host_as_a_job(commands: Callable[[str, str], None]) -> None:
    commands("scontrol", 'echo "JobId=$4 JobState=RUNNING EndTime=1795682858"')
    assert host_job.own_end_s(rlnb.slurm(host="job"), "7") == 1795682858.0
    assert host_job.own_end_s(rlnb.slurm(), "7") is None
    assert host_job.own_end_s(rlnb.slurm(host="job"), "") is None
