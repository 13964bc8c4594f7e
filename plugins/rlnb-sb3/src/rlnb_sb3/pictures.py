"""Stable-Baselines3's CNN for pictures of Isaac Lab, which are floats without bounds, and may have channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import NatureCNN

CNN_POLICY = "CnnPolicy"


class Pictures(NatureCNN):
    """Stable-Baselines3's CNN, which takes channels first, behind a permutation if the pictures have them last."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 512) -> None:
        shape = observation_space.shape
        self._is_last = shape[2] < shape[0]
        first = (shape[2], shape[0], shape[1]) if self._is_last else shape
        super().__init__(spaces.Box(-np.inf, np.inf, first), features_dim, normalized_image=True)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return features, shape (n, features_dim), for pictures."""
        return super().forward(observations.permute(0, 3, 1, 2) if self._is_last else observations)


def with_extractor(policy: str, space: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an agent, with :class:`Pictures` if its policy is a CNN and SB3's own does not fit.

    Args:
        policy: Name of the policy.
        space: Space of the observations.
        options: Arguments of the agent.
    """
    extractor: dict[str, Any] = {"features_extractor_class": Pictures}
    is_theirs = not isinstance(space, spaces.Box) or is_image_space(space) or len(space.shape) != 3
    if policy != CNN_POLICY or is_theirs:
        return options
    return {**options, "policy_kwargs": {**extractor, **(options.get("policy_kwargs") or {})}}
