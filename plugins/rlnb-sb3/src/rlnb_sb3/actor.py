"""Stable-Baselines3's policy as a single torch module, for rollouts and export."""

from __future__ import annotations

import math
from typing import Any

import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from rlnb import RlnbError


class Actor(torch.nn.Module):
    """Maps observations to the most likely or sampled actions, normalised and clipped as in training."""

    def __init__(self, agent: Any, deterministic: bool) -> None:
        super().__init__()
        space = agent.action_space
        if not isinstance(space, Box | Discrete | MultiDiscrete) or not isinstance(agent.observation_space, Box):
            raise RlnbError(
                "rlnb-sb3 supports only policies with one observation tensor, and with actions of a Box, a Discrete or "
                "a MultiDiscrete."
            )
        self._policy, self._deterministic = agent.policy.eval(), deterministic
        self._continuous = isinstance(space, Box)
        values: dict[str, Any] = {"mean": 0.0, "std": 1.0}
        if isinstance(space, Box):
            values |= {"low": space.low, "high": space.high}
        normaliser, self._clip = agent.get_vec_normalize_env(), math.inf
        if normaliser is not None:
            statistics, self._clip = normaliser.obs_rms, normaliser.clip_obs
            values |= {"mean": statistics.mean, "std": (statistics.var + normaliser.epsilon) ** 0.5}
        for name, value in values.items():
            self.register_buffer(name, torch.as_tensor(value, device=agent.device))

    def forward(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for Isaac Lab's dict of observations; shape (n,) for a Discrete.

        They are float tensors, also for indexes, as those that Isaac Lab's wrapper passes to the env in training.
        """
        mean, std = map(self.get_buffer, ("mean", "std"))
        obs = ((obs["policy"] - mean) / std).clamp(-self._clip, self._clip).float()
        if obs.shape[1:] != self._policy.observation_space.shape:  # SB3's image policies expect channels first
            obs = obs.permute(0, 3, 1, 2)
        actions = self._policy.get_distribution(obs).get_actions(self._deterministic)
        if not self._continuous:
            return actions.float()
        low, high = map(self.get_buffer, ("low", "high"))
        if self._policy.squash_output:  # rescale from (-1, 1)
            actions = low + (actions + 1) * (high - low) / 2
        return torch.clamp(actions, low, high)

    def reset(self, dones: torch.Tensor) -> None:
        """Do nothing: these policies are feed-forward and have no state."""
