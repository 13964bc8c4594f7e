"""The cause of an interruption, from the texts that agents and hosts write."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rlnb.accounting.causes import cause_of
from rlnb.node.child import describe_exit
from rlnb.node.peers import HANGS
from rlnb.spec import Result

LOG = Path("/nowhere/node0.log")


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (None, "process lost"),
        (Result(outcome="cancelled"), "cancelled"),
        (Result(outcome="timeout", error="stopped after its walltime of 60 s"), "walltime"),
        (Result(outcome="failed", error=describe_exit(-signal.SIGKILL, LOG)), "process killed"),
        (Result(outcome="failed", error=f"rank 1 on node 0 (a): {describe_exit(137, LOG)}"), "process killed"),
        (Result(outcome="failed", error=f"{HANGS} for 900 s: a rank hangs"), "hang"),
        (Result(outcome="failed", error="The worker hangs: it wrote nothing for 900 s while it started"), "hang"),
        (Result(outcome="failed", error="ValueError: nothing was logged"), "error"),
        (Result(outcome="failed", error="OSError: [Errno 28] No space left on device"), "disk full"),
        (
            Result(
                outcome="failed",
                error="node 0 (a) was revoked by the queue: preempted, requeued, or past its walltime",
                values={"interrupted": True},
            ),
            "preempted",
        ),
        (
            Result(outcome="failed", error="node 1 (b) is lost: it is down", values={"interrupted": True}),
            "node lost",
        ),
        (Result(outcome="failed", error=describe_exit(1, LOG)), "error"),
    ],
)
def test_a_result_has_one_cause(result: Result | None, cause: str) -> None:
    assert cause_of(result) == cause
