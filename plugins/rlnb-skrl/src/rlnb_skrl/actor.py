"""skrl's policy as a single torch module for export, because skrl has no exporter."""

from __future__ import annotations

import torch

from rlnb import RlnbError
from rlnb_skrl.part import Part
from rlnb_skrl.select import Selection


class Actor(torch.nn.Module):
    """Maps observations to the most likely actions: preprocessor, network and :class:`Selection`, as in rollouts."""

    def __init__(self, part: Part, selection: Selection) -> None:
        """Build the module from a restored agent.

        Args:
            part: The part of the agent that acts.
            selection: Gets the actions from the output of the network.

        Raises:
            RlnbError: The agent has no policy with a network.
        """
        super().__init__()
        if not hasattr(part.policy, "compute"):
            raise RlnbError("The agent has no policy to export.")
        self._policy = part.policy.eval()
        self._preprocessor = part.modules.get("observation_preprocessor", torch.nn.Identity())
        self._selection = selection

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for flattened observations, shape (n, obs_dim).

        They are float tensors for a ``Box``, and indexes, int64, for a ``Discrete`` or ``MultiDiscrete``.
        """
        output, _ = self._policy.compute({"observations": self._preprocessor(obs), "states": None}, "policy")
        return self._selection(output)
