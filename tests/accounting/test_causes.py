"""The cause of an interruption, from the texts that agents and hosts write."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rlnb.accounting.account import cause_of
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
            Result(
                outcome="failed",
                error="node 0 (a) was killed, and its cluster has started it again",
                values={"interrupted": True},
            ),
            "process killed",
        ),
        (Result(outcome="failed", error="ValueError: the robot: it was preempted"), "error"),
        (
            Result(outcome="failed", error="node 1 (b) is lost: it is down", values={"interrupted": True}),
            "node lost",
        ),
        (Result(outcome="failed", error=describe_exit(1, LOG)), "error"),
    ],
)
def test_a_result_has_one_cause(result: Result | None, cause: str) -> None:
    assert cause_of(result) == cause


REVOKED = "node 0 (a) was revoked by the queue: preempted, requeued, or past its walltime"
LOST = "node 1 (b) is lost: it is down, or its queue has ended the job"


@pytest.mark.parametrize("guess", [REVOKED, LOST])
def test_the_cause_that_slurm_names_is_the_cause(guess: str) -> None:
    with_cause = pytest.importorskip("rlnb_dask.causes").with_cause
    meanings = pytest.importorskip("rlnb_dask.queues.slurm_answers").MEANINGS
    errors = {state: with_cause(guess, f"Slurm's job 7 {meaning}") for state, meaning in meanings.items()}
    assert {
        state: cause_of(Result(outcome="failed", error=error, values={"interrupted": True}))
        for state, error in errors.items()
    } == {
        "CANCELLED": "cancelled",
        "PREEMPTED": "preempted",
        "TIMEOUT": "walltime",
        "NODE_FAIL": "node lost",
        "BOOT_FAIL": "node lost",
        "OUT_OF_MEMORY": "process killed",
        "DEADLINE": "walltime",
        "COMPLETED": "preempted" if guess == REVOKED else "node lost",
    }
