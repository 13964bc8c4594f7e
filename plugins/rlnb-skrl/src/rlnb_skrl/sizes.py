"""Sizes in skrl's agent config that leave nothing to learn from, so that losses and weights would be nan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem

ROLLOUTS, MINIBATCHES = "agent.rollouts", "agent.mini_batches"
BATCH, MEMORY = "agent.batch_size", "memory.memory_size"
SCALERS = ("agent.observation_preprocessor", "agent.state_preprocessor")
"""Normalisers that take the variance of each batch, which is nan for a single frame."""


def problems(values: Mapping[str, object], usual: Mapping[str, object], num_envs: int) -> Iterator[Problem]:
    """Find the sizes that do not fit each other.

    Args:
        values: The agent config by dotted path.
        usual: The same without the values that the user has set.
        num_envs: Number of envs of a rank.
    """
    if values.get(MEMORY) == 0:
        yield Problem(what=f"{MEMORY}=0 is a memory without a frame.", fix=f"Use {MEMORY}=-1.")
    least = 2 if any(values.get(path) for path in SCALERS) else 1
    rollouts, minibatches, batch = (values.get(path) for path in (ROLLOUTS, MINIBATCHES, BATCH))
    if isinstance(rollouts, int) and isinstance(minibatches, int):
        memory = values.get(MEMORY)
        steps = memory if isinstance(memory, int) and 0 < memory < rollouts else rollouts
        if num_envs * steps < 2:  # the standard deviation of one advantage is nan
            fix = f"Use {MEMORY}=-1." if steps < rollouts else f"Use {ROLLOUTS}=2."
            yield Problem(what="An iteration has 1 frame for each rank, but skrl needs 2.", fix=fix)
            steps = max(2, rollouts)
        yield from _minibatches(num_envs * steps, minibatches, least)
    elif isinstance(batch, int) and batch < least:
        yield Problem(what=f"{BATCH}={batch} is too small for {SCALERS[0]}.", fix=f"Use {BATCH}={least}, or more.")


def _minibatches(frames: int, minibatches: int, least: int) -> Iterator[Problem]:
    if frames // minibatches < least:
        lack = "a frame" if least == 1 else "two frames, whose variance normalises the observations"
        what = f"{MINIBATCHES}={minibatches} leaves minibatches without {lack}: a rank has {frames} frames."
        yield Problem(what=what, fix=f"Use {MINIBATCHES}={frames // least}, or more envs.")
