"""RL-Games' actor as a single torch module for export, because RL-Games has no exporter."""

from __future__ import annotations

import math
from typing import Any

import torch

from rlnb import RlnbError
from rlnb_rl_games.config import AgentConfig, EnvSettings

TANH = "continuous_a2c_tanh"
"""RL-Games' name of the model whose distribution is a normal one after tanh."""


class Actor(torch.nn.Module):
    """Maps observations to actions: clipping, normaliser, network mean, scaling and clipping as in training."""

    _low: torch.Tensor
    _high: torch.Tensor

    def __init__(self, player: Any, agent_cfg: AgentConfig) -> None:
        """Build the module from a restored player.

        Raises:
            RlnbError: The policy is recurrent or discrete, or its observation is a dict.
        """
        super().__init__()
        settings: EnvSettings = agent_cfg["params"].get("env", {})
        name = agent_cfg["params"]["algo"]["name"]
        if player.is_rnn or name != "a2c_continuous" or not settings.get("concate_obs_groups", True):
            raise RlnbError(
                "Only feed-forward policies with continuous actions and a single observation tensor can be exported."
            )
        model = player.model.eval()
        self._normaliser = Normaliser(model.running_mean_std) if model.normalize_input else torch.nn.Identity()
        self._network = model.a2c_network
        self._rescale = bool(player.clip_actions)
        self._clip = float(settings.get("clip_actions", math.inf))
        self._clip_obs = float(settings.get("clip_observations", math.inf))
        if self._rescale:
            self.register_buffer("_low", player.actions_low)
            self.register_buffer("_high", player.actions_high)
        self._squashes = squashes(agent_cfg)
        self._preprocess = player._preproc_obs

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for observations, shape (n, ...)."""
        obs = obs.clamp(-self._clip_obs, self._clip_obs)
        normalised = self._normaliser(self._preprocess(obs))
        mean, *_ = self._network({"is_train": False, "obs": normalised, "prev_actions": None})
        if self._squashes:
            mean = mean.tanh()
        if self._rescale:
            middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2
            mean = mean.clamp(-1.0, 1.0) * half + middle
        return mean.clamp(-self._clip, self._clip)


def squashes(agent_cfg: AgentConfig) -> bool:
    """Return whether a policy passes the samples of its distribution through tanh.

    RL-Games' player does not pass the mean through it.
    """
    model = agent_cfg["params"].get("model")
    return model is not None and model["name"] == TANH


class Normaliser(torch.nn.Module):
    """Traceable copy of RL-Games' observation normaliser, which is a scripted module and cannot be traced.

    ``rl_games.algos_torch.running_mean_std.RunningMeanStd`` has the formula: (x - mean) / sqrt(var + epsilon), clipped
    to -5 to 5.
    """

    _mean: torch.Tensor
    _deviation: torch.Tensor

    def __init__(self, statistics: Any) -> None:
        super().__init__()
        self.register_buffer("_mean", statistics.running_mean.float())
        self.register_buffer("_deviation", torch.sqrt(statistics.running_var.float() + statistics.epsilon))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self._mean) / self._deviation).clamp(-5.0, 5.0)
