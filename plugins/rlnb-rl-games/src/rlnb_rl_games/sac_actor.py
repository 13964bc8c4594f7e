"""The policy of RL-Games' SAC as a single torch module, for rollouts and export."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rlnb_rl_games.actor import Normaliser
from rlnb_rl_games.config import AgentConfig, EnvSettings


class SacActor(torch.nn.Module):
    """Maps observations to actions: clipping, normaliser, network, tanh and scaling as in training.

    RL-Games' own player leaves out the scaling.
    """

    _low: torch.Tensor
    _high: torch.Tensor

    def __init__(self, player: Any, agent_cfg: AgentConfig, checkpoint: Path, device: str) -> None:
        """Build the module.

        Args:
            player: RL-Games' player, with any weights.
            agent_cfg: The agent config.
            checkpoint: File of a vetted checkpoint.
            device: Device of the module.
        """
        super().__init__()
        state = torch.load(checkpoint, map_location=device, weights_only=False)
        model = player.model.eval()
        model.sac_network.actor.load_state_dict(state["actor"])
        if model.normalize_input:
            model.running_mean_std.load_state_dict(state["running_mean_std"])
        settings: EnvSettings = agent_cfg["params"].get("env", {})
        self._normaliser = Normaliser(model.running_mean_std) if model.normalize_input else torch.nn.Identity()
        self._actor = model.sac_network.actor
        self._clip_obs = float(settings.get("clip_observations", math.inf))
        space = player.action_space
        self.register_buffer("_low", torch.as_tensor(space.low, device=device))
        self.register_buffer("_high", torch.as_tensor(space.high, device=device))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for observations, shape (n, obs_dim)."""
        mean, _ = self._actor.trunk(self._inputs(obs)).chunk(2, dim=-1)
        return self._scaled(mean.tanh())

    def sample(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions from the policy's distribution."""
        return self._scaled(self._actor(self._inputs(obs)).sample())

    def _inputs(self, obs: torch.Tensor) -> torch.Tensor:
        normalised: torch.Tensor = self._normaliser(obs.clamp(-self._clip_obs, self._clip_obs))
        return normalised

    def _scaled(self, actions: torch.Tensor) -> torch.Tensor:
        middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2
        return (actions * half + middle).clamp(self._low, self._high)


class SacPolicy:
    """A :class:`SacActor` as a policy that takes Isaac Lab's observation dict."""

    def __init__(self, actor: SacActor, observations: Any, deterministic: bool) -> None:
        self._actor, self._observations, self._deterministic = actor, observations, deterministic

    def __call__(self, obs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return actions, shape (num_envs, action_dim)."""
        inputs = self._observations(obs)
        return self._actor(inputs) if self._deterministic else self._actor.sample(inputs)

    def reset(self, dones: torch.Tensor) -> None:
        """Do nothing, because the policy has no state."""
