"""Trainings without a simulator on a cluster, and functions to inspect their processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psutil

import rlnb
from rlnb.node.supervisor import EXIT_GRACE_S

LEAVE_S = EXIT_GRACE_S + 25.0
"""Seconds within which all processes of a completed run must end. If the first node leaves before torchrun on another
node has finished its exit barrier, torchrun imports torch's compiler to log the error. On a busy machine this is slow,
and the agent waits ``EXIT_GRACE_S`` for it."""


def echo(launcher: Any, iterations: int = 10_000, **arguments: Any) -> rlnb.Run:
    """Start a training without a simulator, with a tenth of a second per iteration."""
    agent = {"iteration_s": 0.1, **arguments.pop("agent", {})}
    return rlnb.train("Echo", library="echo", max_iterations=iterations, launcher=launcher, agent=agent, **arguments)


def wait_until(fact: Callable[[], object], within_s: float = 60.0) -> float:
    """Wait until a condition holds, and return the seconds that this took."""
    begun = time.monotonic()
    while not fact():
        assert time.monotonic() - begun < within_s, f"the condition did not hold within {within_s:g} s"
        time.sleep(0.05)
    return time.monotonic() - begun


def alive(text: str) -> list[psutil.Process]:
    """Return all processes with a text in their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        is_zombie = process.info["status"] == psutil.STATUS_ZOMBIE
        if not is_zombie and any(text in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def processes(run: rlnb.Run) -> list[psutil.Process]:
    """Return all processes of a run on any node, including its host process."""
    return alive(run.id)


def rank(run: rlnb.Run, number: int) -> psutil.Process:
    """Return the process of a rank."""
    for process in processes(run):
        with_rank = process.environ().get("RANK") == str(number)
        if with_rank and "rlnb.worker" in process.cmdline():
            return process
    raise AssertionError(f"rank {number} does not run")
