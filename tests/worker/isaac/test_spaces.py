"""The env on which a policy is loaded: it has the spaces of the env that trains, and cannot change that env."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict

import rlnb
from rlnb.worker.isaac.spaces import env_of_spaces


def box(size: int) -> Box:
    return Box(-np.inf, np.inf, (size,))


class Env(gymnasium.Env[Any, Any]):
    """An env with the attributes of Isaac Lab's direct envs, which returns a group that its spaces lack."""

    num_envs, device = 3, "cpu"

    def __init__(self) -> None:
        self.single_observation_space = Dict({"policy": box(4), "critic": box(6)})
        self.single_action_space = self.action_space = box(1)
        self.obs_buf = {"policy": torch.ones(3, 4), "critic": torch.ones(3, 6), "teacher": torch.ones(3, 5)}
        self.resets = self.closes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.resets += 1
        return self.obs_buf, {}

    def close(self) -> None:
        self.closes += 1

    def __del__(self) -> None:
        self.close()


def test_the_env_that_trains_stays_as_it_is() -> None:
    env = Env()
    view = env_of_spaces(env, {})
    observations, _ = view.reset()
    assert {name: tuple(value.shape) for name, value in observations.items()} == {
        "policy": (3, 4),
        "critic": (3, 6),
        "teacher": (3, 5),
    }
    assert not any(value.any() for value in observations.values())
    view.unwrapped.single_action_space = box(9)
    view.marker = 1
    with pytest.raises(rlnb.RlnbError, match="cannot be stepped"):
        view.step(None)
    assert isinstance(view, Env)
    view.close()
    del view
    assert (env.single_action_space, env.resets, env.closes) == (box(1), 0, 0)
    assert not hasattr(env, "marker")


def test_a_group_takes_the_place_of_another_one() -> None:
    view = env_of_spaces(Env(), {"policy": "critic"})
    assert view.single_observation_space == Dict({"policy": box(6), "critic": box(6)})
    assert view.observation_space["policy"].shape == (3, 6)
    assert view.reset()[0]["policy"].shape == (3, 6)
    assert view.obs_buf["policy"].shape == (3, 6)
    assert env_of_spaces(Env(), {"policy": "teacher"}).single_observation_space["policy"] == box(5)


def test_a_group_that_the_env_lacks_is_refused() -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"observation group named 'teachr'.*'teacher'"):
        env_of_spaces(Env(), {"policy": "teachr"})
