"""The job script for Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from rlnb.manifests import sbatch
from rlnb.manifests.job import Request

TEXT = """#!/usr/bin/env bash
#SBATCH --job-name=rlnb-20261126-082933-isaac-repose-cube-sh-0dda
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --mem=128G
#SBATCH --partition=gpu
#SBATCH --time=25:10:00
#SBATCH --output=rlnb-%j.log
#SBATCH --no-requeue
#SBATCH --account=robots
#SBATCH --qos=long
module load cuda
export OMP_NUM_THREADS=4
export NOTE='two words'
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000)) WORLD_SIZE=$SLURM_NNODES
srun --export=ALL ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} \
--kill-on-bad-exit=1 bash -c 'RANK=$SLURM_PROCID exec "$@"' rlnb '/my env/python' -P -m rlnb.pods """


def test_it_sets_node_master_time_and_a_port_of_the_job(request_of: Callable[..., Request]) -> None:
    made = request_of(
        "sbatch",
        python="/my env/python",
        cpus=32,
        memory_gib=128,
        queue="gpu",
        walltime_s=25 * 3600,
        env={"NOTE": "two words"},
        lines=["--account=robots", "#SBATCH --qos=long", "module load cuda"],
    )
    assert sbatch.render(made) == f"{TEXT}{made.path}\n"


def test_without_arguments_the_sites_defaults_apply(request_of: Callable[..., Request]) -> None:
    text = sbatch.render(request_of("sbatch", device="cpu"))
    options = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert not [word for word in ("gpus", "--mem", "--cpus", "--time", "--partition") if word in "".join(options)]
    assert "OMP" not in text


@pytest.mark.parametrize(("cores", "option"), [({"SLURM_CPUS_PER_TASK": "8"}, ["--cpus-per-task=8"]), ({}, [])])
def test_each_node_gets_the_cores_of_the_job(
    request_of: Callable[..., Request], cores: dict[str, str], option: list[str]
) -> None:
    line = sbatch.render(request_of("sbatch")).splitlines()[-1]
    script = f"srun() {{ printf '%s\\n' \"$@\"; }}\n{line}"
    argv = subprocess.check_output(["bash", "-c", script], env={"PATH": "/usr/bin:/bin", **cores}, text=True)
    assert argv.splitlines()[: len(option) + 2] == ["--export=ALL", *option, "--kill-on-bad-exit=1"]


def test_bash_accepts_it_and_ports_of_jobs_differ(request_of: Callable[..., Request]) -> None:
    text = sbatch.render(request_of("sbatch"))
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    line = next(line for line in text.splitlines() if "MASTER_PORT" in line)
    script = f'{line}; echo "$MASTER_PORT"'
    ports = {
        subprocess.check_output(["bash", "-c", script], env={"SLURM_JOB_ID": number, "PATH": "/usr/bin:/bin"})
        for number in ("41", "20042")
    }
    assert ports == {b"20041\n", b"20042\n"}
