"""Off-policy algorithms get an action space with bounds."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("skrl")
import gymnasium
import numpy as np
from rlnb_skrl.bounded import BoundedActions

from rlnb import RlnbError


def env(space: gymnasium.Space[Any]) -> Any:
    observations = gymnasium.spaces.Box(-1, 1, (3,))
    return SimpleNamespace(
        device="cpu",
        num_envs=2,
        action_space=space,
        observation_space=observations,
        state_space=None,
        reset=lambda: "first",
    )


def test_only_bounds_that_are_missing_become_one() -> None:
    space = gymnasium.spaces.Box(np.array([-2.0, -math.inf], np.float32), np.array([2.0, 2.0], np.float32))
    bounded = BoundedActions(env(space))
    assert isinstance(bounded.action_space, gymnasium.spaces.Box)
    assert bounded.action_space.low.tolist() == [-2.0, -1.0]
    assert bounded.action_space.high.tolist() == [2.0, 2.0]
    assert bounded.observation_space.shape == (3,)
    assert bounded.num_envs == 2
    assert bounded.state_space is None
    assert bounded.reset() == "first"


def test_discrete_actions_are_refused() -> None:
    with pytest.raises(RlnbError, match=r"need continuous actions, but the action space is Discrete\(3\)"):
        BoundedActions(env(gymnasium.spaces.Discrete(3)))
