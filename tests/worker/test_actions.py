"""Random and zero actions, and joint steps of several agents. Spaces are gymnasium's own; no simulator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from rlnb.worker.actions import actions, joint

NUM_ENVS = 64


def env_of(space: gymnasium.Space[Any]) -> Any:
    return SimpleNamespace(single_action_space=space, num_envs=NUM_ENVS, device="cpu")


def test_random_actions_of_a_box_fill_minus_one_to_one_whatever_its_bounds() -> None:
    env = env_of(gymnasium.spaces.Box(-np.inf, np.inf, (NUM_ENVS, 3)))
    sample = actions(env, "random")
    assert sample.shape == (NUM_ENVS, 3)
    assert -1.0 <= sample.min() < -0.5 < 0.5 < sample.max() <= 1.0
    assert not actions(env, "zero").any()
    assert actions(env, "zero").shape == (NUM_ENVS, 3)


@pytest.mark.parametrize(
    ("space", "sizes"),
    [(gymnasium.spaces.Discrete(3), [3]), (gymnasium.spaces.MultiDiscrete([2, 5]), [2, 5])],
)
def test_random_choices_cover_a_discrete_space(space: gymnasium.Space[Any], sizes: list[int]) -> None:
    sample = actions(env_of(space), "random")
    assert sample.shape == (NUM_ENVS, len(sizes))
    for column, size in zip(sample.T, sizes, strict=True):
        assert set(column.tolist()) == {*range(size)}
    assert not actions(env_of(space), "zero").any()


def test_several_agents_get_an_action_each() -> None:
    spaces = {"cart": gymnasium.spaces.Box(-1.0, 1.0, (1,)), "pendulum": gymnasium.spaces.Discrete(2)}
    env = SimpleNamespace(action_spaces=spaces, num_envs=NUM_ENVS, device="cpu")
    assert {name: sample.shape for name, sample in actions(env, "random").items()} == {
        "cart": (NUM_ENVS, 1),
        "pendulum": (NUM_ENVS, 1),
    }


def test_agents_share_the_sum_of_their_rewards_and_end_when_all_of_them_end() -> None:
    yes, no = torch.tensor([True, True]), torch.tensor([False, True])
    reward = {"cart": torch.tensor([1.0, 2.0]), "pendulum": torch.tensor([0.5, -2.0])}
    total, terminated, truncated = joint(reward, {"cart": yes, "pendulum": no}, {"cart": no, "pendulum": no})
    assert total.tolist() == [1.5, 0.0]
    assert terminated.tolist() == [False, True]
    assert truncated.tolist() == [False, True]
    assert joint(reward["cart"], yes, no) == (reward["cart"], yes, no), "the values of a single agent are unchanged"
