"""``"sbatch"``: a job script for Slurm, which is submitted by hand."""

from __future__ import annotations

import shlex

from rlnb.manifests.job import Request

_PORTS = "20000 + SLURM_JOB_ID % 20000"
"""Rendezvous port. Two jobs of different users may share a node."""
_CORES = "${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}"
"""Cores of each task. From Slurm 22.05 on, srun does not take them over from the job, and would give a task one."""


def render(request: Request) -> str:
    options = [line.removeprefix("#SBATCH ") for line in request.lines if line.startswith(("#SBATCH ", "-"))]
    shell = [line for line in request.lines if not line.startswith(("#SBATCH ", "-"))]
    threads = {"OMP_NUM_THREADS": request.pod_env["OMP_NUM_THREADS"]} if request.cpus else {}
    env = {**threads, **request.env}
    lines = [
        "#!/usr/bin/env bash",
        *(f"#SBATCH {option}" for option in (*_options(request), *options)),
        *shell,
        *(f"export {name}={shlex.quote(value)}" for name, value in env.items()),
        'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f"export MASTER_PORT=$(({_PORTS})) WORLD_SIZE=$SLURM_NNODES",
        # A user who submits with --export=NONE would otherwise lose the variables above.
        f"srun --export=ALL {_CORES} --kill-on-bad-exit=1 "
        f"bash -c 'RANK=$SLURM_PROCID exec \"$@\"' rlnb {shlex.join(request.argv)}",
    ]
    return "\n".join(lines) + "\n"


def _options(request: Request) -> list[str]:
    return [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        *([f"--gpus-per-node={request.gpus}"] if request.gpus else []),
        *([f"--cpus-per-task={request.cpus}"] if request.cpus else []),
        *([f"--mem={request.memory_gib}G"] if request.memory_gib else []),
        *([f"--partition={shlex.quote(request.queue)}"] if request.queue else []),
        *([f"--time={_time(request.limit_s)}"] if request.limit_s else []),
        "--output=rlnb-%j.log",
        "--no-requeue",
    ]


def _time(limit_s: int) -> str:
    """Return seconds as Slurm's ``hours:minutes:seconds``."""
    minutes, seconds = divmod(limit_s, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
