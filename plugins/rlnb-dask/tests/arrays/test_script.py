"""The job script of an element, as text and in a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration

import rlnb

SLURM = """#!/usr/bin/env bash

#SBATCH -J rlnb
#SBATCH -p gpu
#SBATCH -A robots
#SBATCH -t 1-08:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue
#SBATCH --cpus-per-task=8
#SBATCH --mem=65536M
#SBATCH --gpus-per-node=4
export RLNB_BEGIN_S=$(date +%s)
RLNB_JOB=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$1")
if [ ! -d "$RLNB_JOB" ]; then
    echo "This node does not see $1 or the folder of its run. Use a root that all nodes share." >&2
    exit 1
fi
exec >>"$RLNB_JOB/node0.log" 2>&1
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
exec '/shared/my env/bin/python' -P -m rlnb_dask.arrays.element "$RLNB_JOB"
"""
SGE = """#!/usr/bin/env bash

#$ -N rlnb
#$ -l h_rt=01:00:00
#$ -cwd
#$ -j y
#$ -S /bin/bash
#$ -r n
export RLNB_BEGIN_S=$(date +%s)
RLNB_JOB=$(sed -n "${SGE_TASK_ID}p" "$1")
if [ ! -d "$RLNB_JOB" ]; then
    echo "This node does not see $1 or the folder of its run. Use a root that all nodes share." >&2
    exit 1
fi
exec >>"$RLNB_JOB/node0.log" 2>&1
exec /env/bin/python -P -m rlnb_dask.arrays.element "$RLNB_JOB"
"""


def test_the_script_has_the_settings_of_the_launcher() -> None:
    launcher = rlnb.slurm(
        nodes=2,
        cpus_per_node=8,
        gpus_per_node=4,
        memory_gib_per_node=64,
        walltime="1-08:30:00",
        partition="gpu",
        account="robots",
        interface="ib0",
        prologue=["module load cuda"],
        python="/shared/my env/bin/python",
    )
    assert launcher.element_script() == SLURM
    assert rlnb.sge(walltime="01:00:00", python="/env/bin/python").element_script() == SGE


def test_the_sites_folder_for_output_does_not_apply() -> None:
    with dask.config.set({"jobqueue.slurm.log-directory": "/site/logs"}):
        assert "/site/logs" not in rlnb.slurm(walltime="01:00:00").element_script()


def element(tmp_path: Path, number: str, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run the script of an element with a shell in place of the interpreter."""
    members = tmp_path / "1.jobs"
    members.write_text("".join(f"{line}\n" for line in lines))
    launcher = rlnb.slurm(walltime="01:00:00", python="/bin/echo", prologue="echo the prologue >&2")
    script = tmp_path / "element.sh"
    script.write_text(launcher.element_script())
    argv, env = ["bash", str(script), str(members)], {"SLURM_ARRAY_TASK_ID": number, "PATH": "/usr/bin:/bin"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def test_an_element_writes_to_the_log_of_its_own_run(tmp_path: Path) -> None:
    first, second = tmp_path / "first run", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert element(tmp_path, "0", str(first), str(second)).returncode == 0
    assert (first / "node0.log").read_text() == f"the prologue\n-P -m rlnb_dask.arrays.element {first}\n"
    assert not (second / "node0.log").exists()


def test_a_node_without_the_shared_folder_says_so(tmp_path: Path) -> None:
    process = element(tmp_path, "0", str(tmp_path / "elsewhere"))
    assert process.returncode == 1
    assert "Use a root that all nodes share." in process.stderr
