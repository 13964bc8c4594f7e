"""Sizes in RSL-RL's agent config that leave nothing to learn from, so that losses and weights would be nan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem

STEPS = "num_steps_per_env"
MINIBATCHES = "algorithm.num_mini_batches"
EPOCHS = "algorithm.num_learning_epochs"
GRADIENT = "algorithm.gradient_length"
PER_MINIBATCH = "algorithm.normalize_advantage_per_mini_batch"
MODELS = ("actor", "critic", "policy")
"""Models of PPO in the agent config; the last one is that of older configs."""
RECURRENT = ("RNNModel", "ActorCriticRecurrent")
"""RSL-RL's recurrent models, whose minibatches are made of envs, not of frames."""


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
    recurrent = any(_is_recurrent(values, model) for model in MODELS)
    frames = num_envs * steps
    parts, kind, each = (num_envs, "envs", steps) if recurrent else (frames, "frames of an iteration", 1)
    least = 2 if values.get(PER_MINIBATCH) is True else 1
    most = max(1, parts // -(-least // each))
    if minibatches > most:
        lack = "a frame" if least == 1 else "two frames"
        what = f"{MINIBATCHES}={minibatches} leaves minibatches without {lack}: a rank has {parts} {kind}."
        yield Problem(what=what, fix=f"Use {MINIBATCHES}={most}, or more envs.")


def _is_recurrent(values: Mapping[str, object], model: str) -> bool:
    """Return whether a model is recurrent: its class is RSL-RL's, or its config names the kind of its RNN."""
    name = str(values.get(f"{model}.class_name", ""))
    return re.split("[.:]", name)[-1] in RECURRENT or isinstance(values.get(f"{model}.rnn_type"), str)
