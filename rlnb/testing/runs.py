"""The processes, curves and ranks of a run on this machine, and waiting for a condition."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import psutil

import rlnb
from rlnb.records.ranks import Ranks, ranks_of
from rlnb.studies.verify import Synchronisation

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


# -- curves ----------------------------------------------------------------------------------------------------------


LEARNED = ("reward", "policy_loss", "value_loss", "critic_loss", "entropy", "action_std", "temperature")
"""Metrics that depend on what was learned. The others depend on the clock, the task, or a schedule."""


def learned(run: rlnb.Run) -> dict[str, list[float]]:
    """Return the values of the metrics that depend on what was learned, by metric."""
    values = {name: list(run.metrics[name].values) for name in LEARNED if name in run.metrics.names}
    assert values, f"None of {', '.join(LEARNED)} is logged in {run.progress[0]} iterations. Set `iterations` higher."
    return values


def measured(evaluation: rlnb.results.Evaluation) -> list[float]:
    """Return every number of an evaluation: the returns of its episodes, then its values."""
    return [*evaluation.returns, *(number for numbers in evaluation.values.values() for number in numbers)]


def first_observations(run: rlnb.Run) -> list[str]:
    """Return the digest of each rank's observations at the first reset."""
    ranks = ranks_of(run.jobs[0].result)
    assert ranks is not None, "the job's result has no digests of its ranks' observations"
    return list(ranks.observations)


# -- ranks -----------------------------------------------------------------------------------------------------------


FIXES = {
    "parameters": "The ranks end with different parameters. Start them equal, and average the gradients with "
    "torch.distributed.all_reduce.",
    "statistics": "The ranks end with different buffers, such as the statistics of a normaliser. Use ctx.pool.",
    "observations": "The ranks collect the same data. Use ctx.seed, which differs between the ranks.",
    "parameters without synchronisation": "The ranks are equal without synchronisation too, so that equal parameters "
    "prove nothing. Synchronise with torch.distributed.all_reduce, or not at all if ctx.synchronised is False.",
}
"""The fault and its fix, by the name of the check."""


def faults_of(proof: Synchronisation) -> list[str]:
    """Return the faults of a library whose ranks do not learn as one, each with its fix; empty if they do."""
    return [
        f"{FIXES[name.partition(' of the role ')[0]]} The digests are {digests}."
        for name, digests, _, holds in proof.rows()
        if not holds
    ]


def differences_of(ranks: Ranks, world_size: int) -> Iterator[str]:
    """Yield the faults of ranks that all do the same and did not end as one, each with its fix."""
    if len(ranks.parameters) != world_size:
        fix = "Leave torch's process group open until train() returns."
        yield f"There are digests of {len(ranks.parameters)} of {world_size} ranks. {fix}"
    for name, digests in (("parameters", ranks.parameters), ("statistics", ranks.buffers)):
        if len(set(digests)) > 1:
            yield f"{FIXES[name]} The digests are {', '.join(digests)}."
