"""Stable-Baselines3's policy as one module of tensors, to be rolled out and exported."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Box

from rlnb import RlnbError


class Actor(torch.nn.Module):
    """From observations to the mean or a sampled action, normalised and clipped as in training."""

    def __init__(self, agent: Any, deterministic: bool) -> None:
        super().__init__()
        if not isinstance(agent.action_space, Box) or not isinstance(agent.observation_space, Box):
            raise RlnbError("rlnb-sb3 rolls out policies of one observation tensor and continuous actions.")
        self._policy, self._deterministic = agent.policy.eval(), deterministic
        normaliser = agent.get_vec_normalize_env()
        self._clip = normaliser.clip_obs if normaliser else None
        mean, var = (normaliser.obs_rms.mean, normaliser.obs_rms.var) if normaliser else (0.0, 1.0)
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float64, device=agent.device))
        epsilon = normaliser.epsilon if normaliser else 0.0
        self.register_buffer("std", torch.as_tensor(var, dtype=torch.float64, device=agent.device).add(epsilon).sqrt())
        self.register_buffer("low", torch.as_tensor(agent.action_space.low, device=agent.device))
        self.register_buffer("high", torch.as_tensor(agent.action_space.high, device=agent.device))

    def forward(self, obs: Any) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for observations or Isaac Lab's dict of them."""
        obs = obs["policy"] if isinstance(obs, dict) else obs
        if self._clip is not None:
            obs = ((obs - self.mean) / self.std).clamp(-self._clip, self._clip).float()
        if obs.shape[1:] != self._policy.observation_space.shape:  # pictures: channels first
            obs = obs.permute(0, 3, 1, 2)
        policy = self._policy
        if not self._deterministic:
            return torch.clamp(policy.get_distribution(obs).get_actions(), self.low, self.high)
        features = policy.extract_features(obs, policy.pi_features_extractor)
        mean = policy.action_net(policy.mlp_extractor.forward_actor(features))
        return torch.clamp(mean.tanh() if policy.squash_output else mean, self.low, self.high)

    def reset(self, dones: torch.Tensor) -> None:
        """Nothing to forget: these policies are feed-forward."""
