"""Sizes of skrl's agent configs that leave nothing to learn from, each with a fix after which none is left."""

import re
from typing import Any

import pytest

from rlnb.hooks import plugins

ROLLOUTS, MINIBATCHES, BATCH = "agent.rollouts", "agent.mini_batches", "agent.batch_size"
PPO: dict[str, Any] = {ROLLOUTS: 16, MINIBATCHES: 8, "agent.learning_epochs": 5, "memory.memory_size": -1}
SAC: dict[str, Any] = {BATCH: 256, "agent.gradient_steps": 1, "memory.memory_size": -1}
SCALED = {"agent.observation_preprocessor": "RunningStandardScaler"}


@pytest.mark.parametrize(
    ("usual", "chosen", "num_envs", "expected"),
    [
        (PPO, {}, 1, {}),
        (PPO, {ROLLOUTS: 1}, 8, {}),
        (PPO, {ROLLOUTS: 1, **SCALED}, 8, {MINIBATCHES: 4}),
        (PPO, {ROLLOUTS: 1}, 3, {MINIBATCHES: 3}),
        (PPO, {ROLLOUTS: 1}, 1, {ROLLOUTS: 2, MINIBATCHES: 2}),
        (PPO, {ROLLOUTS: 0, MINIBATCHES: 0}, 2, {ROLLOUTS: 16, MINIBATCHES: 1}),
        (PPO, {"agent.learning_epochs": 0}, 2, {"agent.learning_epochs": 5}),
        (PPO, {"memory.memory_size": 2}, 2, {MINIBATCHES: 4}),
        (PPO, {"memory.memory_size": 1, ROLLOUTS: 5, MINIBATCHES: 1}, 1, {}),  # memory.memory_size=-1
        (SAC, {}, 1, {}),
        (SAC, {BATCH: 0}, 1, {BATCH: 256}),
        (SAC, {BATCH: 1, **SCALED}, 1, {BATCH: 2}),
        (SAC, {"agent.gradient_steps": 0, "memory.memory_size": 0}, 1, {"agent.gradient_steps": 1}),
    ],
)
def test_the_fix_is_the_nearest_size_that_fits(
    usual: dict[str, Any], chosen: dict[str, Any], num_envs: int, expected: dict[str, int]
) -> None:
    found = list(plugins.size_problems(plugins.library("skrl"), {**usual, **chosen}, usual, num_envs))
    fixed = {path: int(size) for one in found for path, size in re.findall(r"([\w.]+)=(-?\d+)", one.fix)}
    assert {path: size for path, size in fixed.items() if size > 0} == expected
    assert not list(plugins.size_problems(plugins.library("skrl"), {**usual, **chosen, **fixed}, usual, num_envs))
