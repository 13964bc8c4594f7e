"""Sizes in RSL-RL's agent config that leave nothing to learn from, so that losses and weights would be nan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb import Problem

STEPS = "num_steps_per_env"
MINIBATCHES = "algorithm.num_mini_batches"
EPOCHS = "algorithm.num_learning_epochs"
GRADIENT = "algorithm.gradient_length"
PER_MINIBATCH = "algorithm.normalize_advantage_per_mini_batch"
RECURRENT = ("RNN", "Recurrent")
"""Parts of the names of recurrent models, whose minibatches are made of envs, not of frames."""


def problems(values: Mapping[str, object], usual: Mapping[str, object], num_envs: int) -> Iterator[Problem]:
    """Find the sizes that do not fit each other.

    Args:
        values: The agent config by dotted path.
        usual: The same without the values that the user has set.
        num_envs: Number of envs of a rank.
    """
    steps, minibatches, epochs = (values.get(path) for path in (STEPS, MINIBATCHES, EPOCHS))
    if not isinstance(steps, int):
        return
    if isinstance(length := values.get(GRADIENT), int) and isinstance(epochs, int) and steps * epochs < length:
        what = f"{GRADIENT}={length} is more than the {steps * epochs} steps of an iteration: no weight changes."
        yield Problem(what=what, fix=f"Use {GRADIENT}={steps * epochs}.")
    if isinstance(minibatches, int):
        if num_envs * steps < 2:  # the standard deviation of one advantage is nan
            yield Problem(what="An iteration has 1 frame for each rank, but RSL-RL needs 2.", fix=f"Use {STEPS}=2.")
            steps = 2
        yield from _minibatches(values, num_envs, steps, minibatches)


def _minibatches(values: Mapping[str, object], num_envs: int, steps: int, minibatches: int) -> Iterator[Problem]:
    recurrent = any(
        part in str(name) for path, name in values.items() if path.endswith("class_name") for part in RECURRENT
    )
    frames = num_envs * steps
    parts, kind, each = (num_envs, "envs", steps) if recurrent else (frames, "frames of an iteration", 1)
    least = 2 if values.get(PER_MINIBATCH) is True else 1
    fitting = [count for count in range(1, minibatches + 1) if parts // count * each >= least]
    if minibatches not in fitting:
        lack = "a frame" if least == 1 else "two frames"
        what = f"{MINIBATCHES}={minibatches} leaves minibatches without {lack}: a rank has {parts} {kind}."
        yield Problem(what=what, fix=f"Use {MINIBATCHES}={fitting[-1]}, or more envs.")
