"""Sizes in Stable-Baselines3's agent config with which its PPO does not start, or has nothing to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem

STEPS, MINIBATCHES, SIZE = "n_steps", "n_minibatches", "batch_size"
NORMALIZES = "normalize_advantage"
"""Whether SB3 divides advantages by their standard deviation, which is its default. It then asserts two frames in an
iteration and in a minibatch."""
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
    least = 2 if values.get(NORMALIZES, True) else 1
    frames = steps * num_envs
    if frames < least:
        yield Problem(what=f"An iteration has {frames} frame, but SB3 needs {least}.", fix=f"Use {STEPS}={least}.")
        frames = least * num_envs
    if isinstance(minibatches, int):  # it takes precedence over the size
        if frames // minibatches < least:
            lack = "a frame" if least == 1 else "two frames"
            what = f"{MINIBATCHES}={minibatches} leaves minibatches without {lack}: an iteration has {frames} frames."
            yield Problem(what=what, fix=f"Use {MINIBATCHES}={frames // least}, or more envs.")
    elif isinstance(size, int) and size < least:
        what = f"{SIZE}={size} is less than {'1 frame' if least == 1 else '2 frames'}."
        yield Problem(what=what, fix=f"Use {SIZE}={min(64, frames)}.")
