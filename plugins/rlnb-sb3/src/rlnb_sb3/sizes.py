"""Sizes in Stable-Baselines3's agent config with which its PPO does not start, or has nothing to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb import Problem

STEPS, MINIBATCHES, SIZE = "n_steps", "n_minibatches", "batch_size"
LEAST = 2
"""Least number of frames in an iteration and in a minibatch, since SB3 divides by their standard deviation."""
USUAL_STEPS = 2048
"""SB3's own number of steps."""


def problems(values: Mapping[str, object], usual: Mapping[str, object], num_envs: int) -> Iterator[Problem]:
    """Find the sizes that do not fit each other.

    Args:
        values: The agent config by dotted path.
        usual: The same without the values that the user has set.
        num_envs: Number of envs.
    """
    steps, minibatches, size = values.get(STEPS, USUAL_STEPS), values.get(MINIBATCHES), values.get(SIZE)
    if not isinstance(steps, int):
        return
    frames = steps * num_envs
    if frames < LEAST:
        yield Problem(what=f"An iteration has {frames} frame, but SB3 needs {LEAST}.", fix=f"Use {STEPS}={LEAST}.")
        frames = LEAST * num_envs
    if isinstance(minibatches, int):  # it takes precedence over the size
        if frames // minibatches < LEAST:
            what = f"{MINIBATCHES}={minibatches} leaves minibatches of less than {LEAST} of the {frames} frames."
            yield Problem(what=what, fix=f"Use {MINIBATCHES}={frames // LEAST}, or more envs.")
    elif isinstance(size, int) and size < LEAST:
        yield Problem(what=f"{SIZE}={size} is less than {LEAST} frames.", fix=f"Use {SIZE}={min(64, frames)}.")
