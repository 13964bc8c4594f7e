"""The command that starts the agents of an element."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rlnb_dask.arrays.element import deadline_s, element_argv

import rlnb
from rlnb.launchers import DetachedJob


@pytest.fixture
def job(tmp_path: Path) -> DetachedJob:
    return DetachedJob(tmp_path / "runs" / "first" / "jobs" / "0-train")


def test_one_node_needs_no_rendezvous(job: DetachedJob) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", cpus_per_node=8)
    assert element_argv(job, launcher, {"RLNB_BEGIN_S": "1000"}, "10.0.0.1:29500") == [
        *("srun", "--export=ALL", "--kill-on-bad-exit=1", "--cpus-per-task=8"),
        *(sys.executable, "-P", "-m", "rlnb.node", str(job.path), "--revocable", "--node=0", "--hang-after=900.0"),
        "--deadline=4540",
    ]


def test_several_nodes_have_a_log_each(job: DetachedJob) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", nodes=2, python="/env/bin/python", hang_after_s=None)
    assert element_argv(job, launcher, {"RLNB_BEGIN_S": "1000"}, "10.0.0.1:29500") == [
        *("srun", "--export=ALL", "--kill-on-bad-exit=1", f"--output={job.path}/node%t.log", "--open-mode=append"),
        *("bash", "-c", 'exec "$@" --node="$SLURM_PROCID"', "rlnb"),
        *("/env/bin/python", "-P", "-m", "rlnb.node", str(job.path), "--revocable", "--node=0"),
        "--master=10.0.0.1:29500",
        "--deadline=4540",
    ]


def test_the_prologue_runs_on_each_of_several_nodes(job: DetachedJob) -> None:
    launcher = rlnb.slurm(walltime="01:00:00", nodes=2, prologue=["module load cuda"])
    argv = element_argv(job, launcher, {"RLNB_BEGIN_S": "1000"}, "10.0.0.1:29500")
    lines = argv[argv.index("bash") + 2].splitlines()
    assert lines.index("module load cuda") < lines.index('exec "$@" --node="$SLURM_PROCID"')
    assert "module load cuda" not in launcher.element_script().splitlines()
    one = rlnb.slurm(walltime="01:00:00", prologue=["module load cuda"])
    assert "module load cuda" in one.element_script().splitlines()
    assert "module load cuda" not in " ".join(element_argv(job, one, {"RLNB_BEGIN_S": "1000"}, ""))


def test_grid_engine_starts_the_agent_itself(job: DetachedJob) -> None:
    argv = element_argv(job, rlnb.sge(walltime="01:00:00"), {"RLNB_BEGIN_S": "1000"}, "10.0.0.1:29500")
    assert argv[:4] == [sys.executable, "-P", "-m", "rlnb.node"]


def test_slurms_own_end_of_the_job_precedes_the_walltime() -> None:
    launcher = rlnb.slurm(walltime="01:00:00", grace_s=100)
    assert deadline_s(launcher, {"SLURM_JOB_END_TIME": "5000", "RLNB_BEGIN_S": "1000"}) == 4900
    assert deadline_s(launcher, {"RLNB_BEGIN_S": "1000"}) == 4500
    assert deadline_s(rlnb.slurm(), {"RLNB_BEGIN_S": "1000"}) is None
