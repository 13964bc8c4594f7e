"""Sizes of RSL-RL's agent config that leave nothing to learn from, each with a fix after which none is left."""

import re
from typing import Any

import pytest

from rlnb.hooks import plugins

STEPS, MINIBATCHES = "num_steps_per_env", "algorithm.num_mini_batches"
USUAL: dict[str, Any] = {STEPS: 24, MINIBATCHES: 4, "algorithm.num_learning_epochs": 5, "actor.class_name": "MLPModel"}
PER_MINIBATCH = {"algorithm.normalize_advantage_per_mini_batch": True}
RECURRENT = {"actor.class_name": "RNNModel"}


def fixes(chosen: dict[str, Any], num_envs: int) -> dict[str, int]:
    """Return the values of the fixes, and check that no problem is left with them."""
    found = list(plugins.size_problems(plugins.library("rsl_rl"), {**USUAL, **chosen}, USUAL, num_envs))
    fixed = {path: int(size) for one in found for path, size in re.findall(r"([\w.]+)=(\d+)", one.fix)}
    assert not list(plugins.size_problems(plugins.library("rsl_rl"), {**USUAL, **chosen, **fixed}, USUAL, num_envs)), (
        found
    )
    return fixed


@pytest.mark.parametrize(
    ("chosen", "num_envs", "expected"),
    [
        ({}, 1, {}),
        ({STEPS: 1}, 4, {}),
        ({STEPS: 1}, 2, {MINIBATCHES: 2}),
        ({STEPS: 1}, 1, {STEPS: 2, MINIBATCHES: 2}),
        ({STEPS: 0}, 2, {STEPS: 24}),
        ({MINIBATCHES: 0}, 2, {MINIBATCHES: 1}),
        ({MINIBATCHES: -3, STEPS: 1}, 1, {MINIBATCHES: 1, STEPS: 2}),
        ({"algorithm.num_learning_epochs": 0}, 2, {"algorithm.num_learning_epochs": 5}),
        ({STEPS: 2, **PER_MINIBATCH}, 3, {MINIBATCHES: 3}),
        (RECURRENT, 3, {MINIBATCHES: 3}),
        ({**RECURRENT, MINIBATCHES: 2}, 3, {}),
        ({**RECURRENT, **PER_MINIBATCH, STEPS: 1}, 5, {MINIBATCHES: 2}),
        ({"critic.class_name": "rsl_rl.models.rnn_model:RNNModel"}, 3, {MINIBATCHES: 3}),
        ({"actor.class_name": "my.models:Memory", "actor.rnn_type": "gru"}, 3, {MINIBATCHES: 3}),
        ({"policy.class_name": "ActorCriticRecurrent"}, 3, {MINIBATCHES: 3}),
        ({"algorithm.class_name": "my:NoRNNPPO", "actor.class_name": "my.RNNs:NonRecurrent"}, 3, {}),
        ({MINIBATCHES: 10**15}, 3, {MINIBATCHES: 72}),
        ({MINIBATCHES: None, "algorithm.gradient_length": 200}, 3, {"algorithm.gradient_length": 120}),
    ],
)
def test_the_fix_is_the_nearest_size_that_fits(chosen: dict[str, Any], num_envs: int, expected: dict[str, int]) -> None:
    assert fixes(chosen, num_envs) == expected
