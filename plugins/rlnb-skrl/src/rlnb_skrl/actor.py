"""skrl's policy as a single torch module for export, because skrl has no exporter."""

from __future__ import annotations

import torch

from rlnb import RlnbError
from rlnb_skrl.part import Part


class Actor(torch.nn.Module):
    """Maps observations to mean actions: preprocessor and network, as in training."""

    def __init__(self, part: Part, bounds: tuple[torch.Tensor, torch.Tensor] | None = None) -> None:
        """Build the module from a restored agent.

        Args:
            part: The part of the agent that acts.
            bounds: Lowest and highest actions, to which the algorithm clips those of its policy; None if it does not.

        Raises:
            RlnbError: The agent has no policy with mean actions.
        """
        super().__init__()
        if not hasattr(part.policy, "compute"):
            raise RlnbError("The agent has no policy to export.")
        self._policy = part.policy.eval()
        self._preprocessor = part.modules.get("observation_preprocessor", torch.nn.Identity())
        self._bounds = bounds

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for flattened observations, shape (n, obs_dim)."""
        actions, _ = self._policy.compute({"observations": self._preprocessor(obs), "states": None}, "policy")
        return actions if self._bounds is None else actions.clamp(*self._bounds)
