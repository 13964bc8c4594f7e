"""What a run's curves say about its training, as the conformance kit compares it."""

from __future__ import annotations

import rlnb
from rlnb.records.ranks import ranks_of

LEARNED = ("reward", "policy_loss", "value_loss", "critic_loss", "entropy", "action_std", "temperature")
"""Metrics that depend on what was learned. The others depend on the clock, the task, or a schedule."""


def learned(run: rlnb.Run) -> dict[str, list[float]]:
    """Return the values of the metrics that depend on what was learned, by metric."""
    values = {name: list(run.metrics[name].values) for name in LEARNED if name in run.metrics.names}
    assert values, f"None of {', '.join(LEARNED)} is logged in {run.progress[0]} iterations. Set `iterations` higher."
    return values


def measured(evaluation: rlnb.Evaluation) -> list[float]:
    """Return every number of an evaluation: the returns of its episodes, then its values."""
    return [*evaluation.returns, *(number for numbers in evaluation.values.values() for number in numbers)]


def first_observations(run: rlnb.Run) -> list[str]:
    """Return the digest of each rank's observations at the first reset."""
    ranks = ranks_of(run.jobs[0].result)
    assert ranks is not None, "the job's result has no digests of its ranks' observations"
    return list(ranks.observations)
