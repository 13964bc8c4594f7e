"""From a manifest to the argv of its processes, in pure functions."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb.machine import threads
from rlnb.records.layout import RunDir
from rlnb.settings import options
from rlnb.spec import Command, JobKind, Manifest, Resources

WORKER = "rlnb.worker"
"""Module that the worker's Python runs."""
TORCHRUN = "torch.distributed.run"
"""Module that starts the ranks of one node."""
RANKS = "--nproc_per_node="
"""Argument of torchrun with the number of ranks of one node."""
NODE = "rlnb.node"
"""Module of the node agent."""
SAFE_PATH, BY_RLNB = "PYTHONSAFEPATH", "rlnb"
"""Variable, and rlnb's value of it, by which interpreters do not search the working folder for modules, as with ``-P``.

It reaches those that a wrapper or torchrun starts. The worker removes it, so that no further process inherits it.
"""
ASSET_ROOT = "ISAACSIM_ASSET_ROOT"
"""Variable from which Isaac Lab takes the folder or URL of robot assets."""
TEAM = "RLNB_TEAM"
"""Variable that sets ``rlnb.options.team``."""


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
    gpu_ranks: int | None = None,
) -> Command:
    """Return the command of one job on one node: plain Python for one process, torchrun for more.

    Only a training waits in the machine's queue, and only with ``max_running``; an evaluation or an export of a
    finished run starts at once.

    Args:
        manifest: What to run.
        kind: Kind of the job.
        run_dir: Folder of the run.
        job_dir: Folder of the job.
        max_running: Most trainings at a time on the machine; None does not wait for others.
        walltime_s: Seconds after which the job is stopped; None sets no limit.
        gpu_ranks: Number of the node's ranks that each get a GPU of their own; None lets all see every GPU.
    """
    python = interpreter(manifest.python)
    worker = manifest.script or ("-m", WORKER, kind, str(run_dir), str(job_dir))
    ranks = manifest.resources if kind == "train" else Resources()
    alone = ranks.nodes == ranks.nproc_per_node == 1
    # A script's Python may be too old for -P. Its working folder is the run's own, and it needs the folder beside it.
    safe = () if manifest.script else ("-P",)
    argv = (*python, *safe, *worker) if alone else (*python, *safe, *torchrun(ranks), *worker)
    return Command(
        argv=argv,
        env={
            **own_env(),
            **({threads.OMP_THREADS: str(ranks.threads)} if ranks.threads else {}),
            # A worker gets it from the manifest.
            **({ASSET_ROOT: manifest.asset_root} if manifest.script and manifest.asset_root else {}),
        },
        # A script writes to its working directory, so that is the run's logs folder.
        cwd=str(RunDir(run_dir).logs) if manifest.script else None,
        queued=kind == "train" and max_running is not None,
        max_running=max_running or 1,
        slots=1 if gpu_ranks is None or kind != "train" else gpu_ranks,
        gpu_per_slot=gpu_ranks is not None,
        device=manifest.resources.device if kind == "train" else "cpu",
        walltime_s=walltime_s,
        nodes=ranks.nodes,
    )


def own_env() -> dict[str, str]:
    """Return the variables that every worker has: output that is written at once, and whether a team is trusted."""
    return {"PYTHONUNBUFFERED": "1", **({TEAM: "1"} if options.team else {})}


def runs_worker(argv: Sequence[str]) -> bool:
    """Return whether a command starts a worker (``-m rlnb.worker``), by itself or inside a wrapper such as a container.

    A user's training script is not a worker.
    """
    return ("-m", WORKER) in itertools.pairwise(argv)


def runs_rlnb(argv: Sequence[str]) -> bool:
    """Return whether a command starts a worker or an agent, by itself or inside a wrapper."""
    return runs_worker(argv) or ("-m", NODE) in itertools.pairwise(argv)


def runs_one_worker(argv: Sequence[str]) -> bool:
    """Return whether a command starts a worker, and without torchrun."""
    return runs_worker(argv) and TORCHRUN not in argv


def torchrun(ranks: Resources) -> tuple[str, ...]:
    """Return Python's arguments to start the ranks of one node, as in Isaac Lab's multi-node guide.

    The agent of each node sets its rank and the rendezvous address in the environment (``PET_NODE_RANK``,
    ``PET_MASTER_ADDR``, ``PET_MASTER_PORT``). torchrun's ``--standalone`` is not used: it unpickles what any user of
    the machine may write into its store.
    """
    return ("-m", TORCHRUN, f"{RANKS}{ranks.nproc_per_node}", f"--nnodes={ranks.nodes}")


def ranks_of(argv: Sequence[str]) -> int:
    """Return the number of ranks that a command starts on each node, 1 without torchrun."""
    counts = (word.removeprefix(RANKS) for word in argv if word.startswith(RANKS)) if TORCHRUN in argv else ()
    return next((int(count) for count in counts if count.isdecimal()), 1)
