"""The generic agent config, with a CNN for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.plugin import Space

SMALLEST = 36
"""Smallest height and width of a picture for Stable-Baselines3's CNN, whose kernels are 8, 4 and 3."""


def ppo(config: Any, observations: Mapping[str, Space], actions: Space) -> Any:
    """Return the generic PPO config for the spaces of a task. Pictures too small for the CNN are flattened."""
    policy = observations.get("policy")
    if policy is not None and policy.shape is not None and policy.is_picture:
        size = policy.shape[:2] if policy.channels_last else policy.shape[1:]
        config["policy"] = "CnnPolicy" if min(size) >= SMALLEST else "MlpPolicy"
        config.update(normalize_input=False)
    elif policy is not None and policy.kind != "box":
        config.update(normalize_input=False)  # its observations are indexes
    return config
