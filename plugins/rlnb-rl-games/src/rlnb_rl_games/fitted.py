"""The generic agent config, with a CNN for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.plugin import Space

LAYERS = ((16, 5), (32, 3), (32, 3))
"""Channels and kernel of each layer of the CNN, which a CPU can train too."""


def ppo(config: Any, observations: Mapping[str, Space], actions: Space) -> Any:
    """Return the generic PPO config for the spaces of a task."""
    policy = observations.get("policy")
    if policy is not None and policy.is_picture:
        config["params"]["network"]["cnn"] = {
            "type": "conv2d",
            "activation": "elu",
            "permute_input": policy.channels_last,
            "initializer": {"name": "default"},
            "regularizer": {"name": "None"},
            "convs": [
                {"filters": channels, "kernel_size": kernel, "strides": 2, "padding": 0} for channels, kernel in LAYERS
            ],
        }
        config["params"]["config"].update(normalize_input=False, learning_rate=0.0003)
    return config
