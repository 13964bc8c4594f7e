"""Trainings without a simulator on a cluster, and how to look at what runs on its nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psutil

import rlnb
from rlnb.node.agent import EXIT_GRACE_S

LEAVE_S = EXIT_GRACE_S + 25.0
"""Seconds in which nothing is left of a run that completed. Where the first node leaves before another has heard that
all are through, torchrun imports torch's compiler there to log it, which a busy machine is long about: its agent gives
it ``EXIT_GRACE_S``."""


def echo(launcher: Any, iterations: int = 10_000, **arguments: Any) -> rlnb.Run:
    """Start a training that needs no simulator, a tenth of a second an iteration."""
    agent = {"iteration_s": 0.1, **arguments.pop("agent", {})}
    return rlnb.train("Echo", library="echo", max_iterations=iterations, launcher=launcher, agent=agent, **arguments)


def wait_until(fact: Callable[[], object], within_s: float = 60.0) -> float:
    """Wait for something to be so; return the seconds that took."""
    begun = time.monotonic()
    while not fact():
        assert time.monotonic() - begun < within_s, "it did not come to that"
        time.sleep(0.05)
    return time.monotonic() - begun


def processes(run: rlnb.Run) -> list[psutil.Process]:
    """Return every process of a run on any node, its host included."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and any(run.id in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def rank(run: rlnb.Run, number: int) -> psutil.Process:
    """Return the process of a rank."""
    for process in processes(run):
        with_rank = process.environ().get("RANK") == str(number)
        if with_rank and "rlnb.worker" in process.cmdline():
            return process
    raise AssertionError(f"rank {number} does not run")
