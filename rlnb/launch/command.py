"""From a manifest to the argv of its processes: pure functions, tested as text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from rlnb.records.layout import RunDir
from rlnb.spec import Command, JobKind, Manifest, Resources


def interpreter(python: str | None) -> tuple[str, ...]:
    """Return the argv that starts the worker's Python.

    Args:
        python: A path, or a command such as ``"/opt/isaaclab/isaaclab.sh -p"``; None is this Python.
    """
    return tuple(shlex.split(python)) if python else (sys.executable,)


def worker_command(
    manifest: Manifest,
    kind: JobKind,
    run_dir: Path,
    job_dir: Path,
    *,
    max_running: int | None = 1,
    walltime_s: float | None = None,
    gpu_per_slot: bool = False,
    threads: int | None = None,
) -> Command:
    """Return the command of one job on one node: plain Python for one process, torchrun for more.

    Only training waits in the machine's queue: what a person asks of a finished run answers now. Without
    ``max_running`` nothing waits there. ``threads`` are those of a single process whose manifest says none; torchrun
    gives each of several ranks one.
    """
    python = interpreter(manifest.python)
    worker = manifest.script or ("-m", "rlnb.worker", kind, str(run_dir), str(job_dir))
    ranks = manifest.resources if kind == "train" else Resources()
    argv = (*python, *worker) if ranks.world_size == 1 else (*python, *torchrun(ranks), *worker)
    threads = ranks.threads or (threads if kind == "train" and ranks.world_size == 1 else None)
    return Command(
        argv=argv,
        env={"PYTHONUNBUFFERED": "1", **({"OMP_NUM_THREADS": str(threads)} if threads else {})},
        # Scripts write where they stand: into the run's folder, by that.
        cwd=str(RunDir(run_dir).logs) if manifest.script else None,
        queued=kind == "train" and max_running is not None,
        max_running=max_running or 1,
        slots=ranks.nproc_per_node if gpu_per_slot else 1,
        gpu_per_slot=gpu_per_slot,
        walltime_s=walltime_s,
        nodes=ranks.nodes,
    )


def torchrun(ranks: Resources) -> tuple[str, ...]:
    """Return what starts the ranks of one node, as in Isaac Lab's guide to several GPUs and nodes.

    With several nodes, the agent of each node sets rank and address of the rendezvous in the environment
    (``PET_NODE_RANK``, ``PET_MASTER_ADDR``, ``PET_MASTER_PORT``).
    """
    start = ("-m", "torch.distributed.run", f"--nproc_per_node={ranks.nproc_per_node}", f"--nnodes={ranks.nodes}")
    return (*start, "--standalone") if ranks.nodes == 1 else start  # standalone picks a free port
