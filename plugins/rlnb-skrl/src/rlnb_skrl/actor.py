"""skrl's policy as one module of tensors, to be exported: skrl brings no export of its own."""

from __future__ import annotations

from typing import Any

import torch

from rlnb import RlnbError


class Actor(torch.nn.Module):
    """From observations to mean actions: preprocessor and network, as in training."""

    def __init__(self, agent: Any) -> None:
        """Take the policy of a restored agent.

        Raises:
            RlnbError: The agent has no policy with mean actions.
        """
        super().__init__()
        if not hasattr(getattr(agent, "policy", None), "compute"):
            raise RlnbError(f"{type(agent).__name__} has no policy to export.")
        self._policy = agent.policy.eval()
        self._preprocessor = agent.checkpoint_modules.get("observation_preprocessor", torch.nn.Identity())

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for flattened observations, shape (n, obs_dim)."""
        actions, _ = self._policy.compute({"observations": self._preprocessor(obs), "states": None}, "policy")
        return actions  # type: ignore[no-any-return]
