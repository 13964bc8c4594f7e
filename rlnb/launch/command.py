"""From a manifest to the argv of its processes: pure functions, tested as text."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from rlnb.spec import Command, JobKind, Manifest


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
    env: Mapping[str, str] | None = None,
) -> Command:
    """Return the command of one job: plain Python for one process, torchrun for more.

    Only training waits in the machine's queue: what a person asks of a finished run answers now. Without
    ``max_running`` nothing waits there.
    """
    python = interpreter(manifest.python)
    worker = ("-m", "rlnb.worker", kind, str(run_dir), str(job_dir))
    ranks = manifest.resources.nproc_per_node if kind == "train" else 1
    argv = (*python, *worker) if ranks == 1 else (*python, *_torchrun(ranks), *worker)
    return Command(
        argv=argv,
        env={"PYTHONUNBUFFERED": "1", **(env or {})},
        queued=kind == "train" and max_running is not None,
        max_running=max_running or 1,
        gpu_per_slot=gpu_per_slot,
        walltime_s=walltime_s,
    )


def _torchrun(nproc_per_node: int) -> tuple[str, ...]:
    # --standalone picks a free port, so two runs on one machine never meet.
    return ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", f"--nproc_per_node={nproc_per_node}")


def shell(command: Command) -> str:
    """Return the command as a line for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    return " ".join([*variables, shlex.join(command.argv)])
