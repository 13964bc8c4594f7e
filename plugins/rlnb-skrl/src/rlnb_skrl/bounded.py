"""Bounds for the actions of off-policy algorithms, which skrl takes from the action space."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from skrl.envs.wrappers.torch.base import Wrapper

from rlnb import RlnbError

BOUND = 1.0
"""Largest absolute value of an action whose space has no bound, the one that Isaac Lab's tasks scale actions for."""


class BoundedActions(Wrapper):
    """An env whose action space has bounds.

    Most action spaces of Isaac Lab have none. skrl then draws its random actions from a normal distribution, and TD3
    and DDPG fail when they clip their exploration noise.
    """

    def __init__(self, wrapper: Any) -> None:
        """Bound the actions of an env.

        Args:
            wrapper: An env in skrl's wrapper.

        Raises:
            RlnbError: The actions are not continuous.
        """
        super().__init__(wrapper)
        space = wrapper.action_space
        if not isinstance(space, gymnasium.spaces.Box):
            raise RlnbError(f"SAC, TD3 and DDPG need continuous actions, but the action space is {space}.")
        low = np.where(np.isfinite(space.low), space.low, -BOUND)
        high = np.where(np.isfinite(space.high), space.high, BOUND)
        self._bounded = gymnasium.spaces.Box(low, high, space.shape, np.float32)

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Bounded action space of one env."""
        return self._bounded

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Observation space of one env."""
        return self._env.observation_space

    @property
    def state_space(self) -> gymnasium.Space[Any] | None:
        """State space of one env; None if the env has no state."""
        return self._env.state_space

    def reset(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Reset the env."""
        return self._env.reset()

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Any]:
        """Step the env."""
        return self._env.step(actions)

    def state(self) -> torch.Tensor | None:
        """Return the state of the env."""
        return self._env.state()

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Render the env."""
        return self._env.render(*args, **kwargs)

    def close(self) -> None:
        """Close the env."""
        self._env.close()
