"""The processes of a run on this machine, and waiting for a condition."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import psutil

import rlnb

POLL_S = 0.05
"""Seconds between two looks at a condition."""


def until(condition: Callable[[], object], timeout_s: float, what: str, fix: str = "") -> None:
    """Wait until a condition holds.

    Args:
        condition: Function that returns whether the condition holds.
        timeout_s: Seconds after which the test fails.
        what: What is waited for, for the message.
        fix: What a plugin has to do for it.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} has not come within {timeout_s:.0f} s. {fix}"
        time.sleep(POLL_S)


def lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended. A zombie has ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def processes_of(run: rlnb.Run) -> list[psutil.Process]:
    """Return the agent of a run's last job, which the launcher local has started, and all processes below it."""
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    with contextlib.suppress(psutil.NoSuchProcess):
        return [agent, *agent.children(recursive=True)]
    return [agent]
