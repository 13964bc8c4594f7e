"""The launcher for this machine: a detached node agent per job, so a run outlives its kernel."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.spec import Command, Manifest, Problem, Resources

_agents: list[subprocess.Popen[bytes]] = []
"""Agents that this process started, kept to collect their exit status."""


class LocalLauncher:
    """Runs jobs on this machine, at most ``max_running`` at a time; the others wait their turn.

    Args:
        max_running: Trainings at once; None is one per GPU, or one without a GPU.
        walltime_s: Seconds after which a run is stopped; None sets no limit.
    """

    name = "local"

    def __init__(self, *, max_running: int | None = None, walltime_s: float | None = None) -> None:
        self.max_running = max_running or max(1, gpu_count())
        self.walltime_s = walltime_s

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return what this launcher cannot do."""
        problems = []
        if manifest.resources.nodes != 1:
            problems.append(
                Problem(
                    what=f"nodes={manifest.resources.nodes}, but the local launcher has one node.",
                    mend="Use a cluster launcher, or nproc_per_node for several ranks on this machine.",
                )
            )
        return [*problems, *_check_gpus(manifest.resources)]

    def submit(self, command: Command, job_dir: Path) -> Mapping[str, Any]:
        """Start the agent of a job whose ``command.json`` is written."""
        _agents[:] = [agent for agent in _agents if agent.poll() is None]
        with open(job_dir / "node0.log", "ab") as log:
            agent = subprocess.Popen(
                [sys.executable, "-m", "rlnb.job", str(job_dir)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a kernel's interrupt or shutdown signals its process group
            )
        _agents.append(agent)
        return handle_of(agent.pid)

    def alive(self, handle: Mapping[str, Any], job_dir: Path) -> bool | None:
        """Return whether the agent still runs; None on another host."""
        if handle["host"] != socket.gethostname():
            return None
        return _process(handle) is not None

    def cancel(self, handle: Mapping[str, Any], job_dir: Path) -> None:
        """Do nothing: the agent itself looks for the request, and a signal could reach it before it can catch one."""

    def __repr__(self) -> str:
        return f"LocalLauncher(max_running={self.max_running})"


def _check_gpus(asked: Resources) -> Iterator[Problem]:
    gpus, device, ranks = gpu_count(), asked.device, asked.nproc_per_node
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cuda") or (kind == "auto" and not gpus):
        return
    there = f"this machine has {gpus or 'no'} NVIDIA GPU{'s' if gpus > 1 else ''}"
    if not gpus or (number.isdigit() and int(number) >= gpus):
        yield Problem(what=f"device={device!r}, but {there}.", mend=f'device="{"cuda" if gpus else "cpu"}"')
    elif ranks > 1 and number:
        yield Problem(what=f"{ranks} ranks cannot share {device}.", mend='device="cuda" gives each rank its own.')
    elif ranks > gpus:
        yield Problem(
            what=f"{ranks} ranks take a GPU each, and {there}.", mend=f'nproc_per_node={gpus}, or device="cpu"'
        )


def handle_of(pid: int) -> dict[str, Any]:
    """Return what finds a process of this host again, safe against reuse of its number."""
    import psutil

    return {"host": socket.gethostname(), "pid": pid, "created_s": psutil.Process(pid).create_time()}


def _process(handle: Mapping[str, Any]) -> int | None:
    import psutil

    try:
        process = psutil.Process(handle["pid"])
        if abs(process.create_time() - handle["created_s"]) > 1.0 or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return process.pid


def gpu_count() -> int:
    """Return the number of NVIDIA GPUs that this process may use."""
    return len(visible_gpus())


def visible_gpus() -> list[str]:
    """Return the NVIDIA GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    try:
        there = len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [str(number) for number in range(there)]
    return [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")][:there]
