"""From a manifest to the argv of its processes: pure functions, tested as text."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.spec import Command, JobKind, Manifest, Rendezvous, Resources


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
    env: Mapping[str, str] | None = None,
    node_rank: int = 0,
    rendezvous: Rendezvous | None = None,
) -> Command:
    """Return the command of one job on one node: plain Python for one process, torchrun for more.

    Only training waits in the machine's queue: what a person asks of a finished run answers now. Without
    ``max_running`` nothing waits there. ``threads`` are those of a single process whose manifest says none; torchrun
    gives each of several ranks one.
    """
    python = interpreter(manifest.python)
    worker = manifest.script or ("-m", "rlnb.worker", kind, str(run_dir), str(job_dir))
    ranks = manifest.resources if kind == "train" else Resources()
    argv = (*python, *worker) if ranks.world_size == 1 else (*python, *torchrun(ranks, node_rank, rendezvous), *worker)
    threads = ranks.threads or (threads if kind == "train" and ranks.world_size == 1 else None)
    return Command(
        argv=argv,
        env={"PYTHONUNBUFFERED": "1", **({"OMP_NUM_THREADS": str(threads)} if threads else {}), **(env or {})},
        # Scripts write where they stand: into the run's folder, by that.
        cwd=str(RunDir(run_dir).logs) if manifest.script else None,
        queued=kind == "train" and max_running is not None,
        max_running=max_running or 1,
        slots=ranks.nproc_per_node if gpu_per_slot else 1,
        gpu_per_slot=gpu_per_slot,
        walltime_s=walltime_s,
        nodes=ranks.nodes,
    )


def torchrun(ranks: Resources, node_rank: int = 0, rendezvous: Rendezvous | None = None) -> tuple[str, ...]:
    """Return what starts the ranks of one node, as Isaac Lab's guide to several GPUs and nodes has it.

    Args:
        ranks: How many.
        node_rank: Which of the nodes this is, from 0.
        rendezvous: Where the nodes meet; None for a single one, or where the agent of each node says it in the
            environment, as :class:`rlnb.Command` tells.
    """
    start = ("-m", "torch.distributed.run", f"--nproc_per_node={ranks.nproc_per_node}", f"--nnodes={ranks.nodes}")
    if ranks.nodes == 1:
        return (*start, "--standalone")  # picks a free port, so two runs on one machine never meet
    if rendezvous is None:
        return start
    meeting, (host, port) = _meeting(ranks, rendezvous)
    if meeting.backend == "static":
        return (*start, f"--node_rank={node_rank}", f"--master_addr={host}", f"--master_port={port}")
    c10d = (f"--rdzv_id={meeting.id}", "--rdzv_backend=c10d", f"--rdzv_endpoint={meeting.endpoint}")
    return (*start, f"--node_rank={node_rank}", *c10d)


def skrl_jax(ranks: Resources, node_rank: int = 0, rendezvous: Rendezvous | None = None) -> tuple[str, ...]:
    """Return what starts the ranks of one node where skrl learns with JAX, as skrl's own documentation has it.

    For a script of one's own: rlnb's ranks are torchrun's, and the plugin names them to JAX.
    """
    start = ("-m", "skrl.utils.distributed.jax", f"--nnodes={ranks.nodes}", f"--nproc_per_node={ranks.nproc_per_node}")
    if ranks.nodes == 1:
        return start
    meeting, _ = _meeting(ranks, rendezvous)
    return (*start, f"--node_rank={node_rank}", f"--coordinator_address={meeting.endpoint}")


def _meeting(ranks: Resources, rendezvous: Rendezvous | None) -> tuple[Rendezvous, tuple[str, str]]:
    host, _, port = rendezvous.endpoint.rpartition(":") if rendezvous else ("", "", "")
    if rendezvous is None or not host or not port.isdigit() or (rendezvous.backend == "c10d" and not rendezvous.id):
        raise RlnbError(
            f"{ranks.nodes} nodes have no place to meet: {rendezvous}. "
            'Rendezvous(endpoint="first-node:29500", id="a name of this run")'
        )
    return rendezvous, (host, port)


def shell(command: Command) -> str:
    """Return the command as a line for a shell; of several nodes that of each, below what to put into it."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    line = " ".join([*variables, shlex.join(command.argv)])
    note = ""
    if command.nodes > 1:
        note = f"# On each node, with NODE from 0 to {command.nodes - 1}, and FIRST, the name of the first:\n"
        line = f"PET_NODE_RANK=$NODE PET_MASTER_ADDR=$FIRST PET_MASTER_PORT=29500 {line}"
    return note + (f"cd {shlex.quote(command.cwd)} && {line}" if command.cwd else line)
