"""What a node adds to the step of a job that runs in a container of Pyxis, with a program in place of srun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlnb_dask.pyxis import step

OPTIONS = ("--container-image=/images/lab.sqsh", "--container-mounts=/runs:/runs", "python", "-m", "rlnb.worker")


@pytest.mark.parametrize(
    ("env", "cores"), [({}, ()), ({"SLURM_CPUS_PER_TASK": "8", "SLURM_JOB_ID": "7"}, ("--cpus-per-task=8",))]
)
def test_a_step_runs_on_this_node_with_the_cores_of_the_job(env: dict[str, str], cores: tuple[str, ...]) -> None:
    assert step(OPTIONS, {"SLURMD_NODENAME": "node1", **env}) == [
        *(
            "srun",
            "--overlap",
            "--export=ALL",
            "--nodes=1",
            "--ntasks=1",
            "--nodelist=node1",
            "--cpu-bind=none",
            *cores,
            *OPTIONS,
        )
    ]


def test_srun_replaces_the_process_and_outside_a_job_there_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s " "$$" "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for name in [name for name in env if name.startswith("SLURM")]:
        del env[name]
    argv = [sys.executable, "-m", "rlnb_dask.pyxis", *OPTIONS]
    outside = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert outside.returncode == 1
    assert "is not part of a Slurm job" in outside.stderr
    inside = subprocess.Popen(argv, env={**env, "SLURMD_NODENAME": "node1"}, stdout=subprocess.PIPE, text=True)
    words = inside.communicate(timeout=60)[0].split()
    assert words[0] == str(inside.pid)
    assert words[-5:] == [*OPTIONS]
    (tmp_path / "srun").unlink()
    env |= {"SLURMD_NODENAME": "node1", "PATH": str(tmp_path)}
    absent = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert absent.returncode == 1
    assert absent.stderr.startswith("srun cannot be started on this node: No such file or directory. ")
