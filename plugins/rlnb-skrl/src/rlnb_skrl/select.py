"""The most likely action of each kind of policy of skrl, whose own rollouts sample if a policy is categorical."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import torch

CLIPS = ("clip_actions", "clip_mean_actions")
"""Settings of a policy with which skrl clips its actions, or their means, to the action space."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Gets the most likely actions from the output of a policy's network."""

    sizes: tuple[int, ...] = ()
    """Number of choices of each categorical distribution, whose logits or probabilities the network returns one after
    the other; empty if the network returns continuous actions."""
    bounds: tuple[torch.Tensor, torch.Tensor] | None = None
    """Lowest and highest actions, to which skrl clips them; None if it does not."""

    @classmethod
    def of(cls, agent: Any, agent_cfg: Any, space: gymnasium.Space[Any], device: str) -> Selection:
        """Return the selection of an agent.

        Args:
            agent: The agent, or the multi-agent algorithm.
            agent_cfg: Its agent config.
            space: Action space of one env for this agent, as skrl's wrapper has it.
            device: Device of the actions.
        """
        if isinstance(space, gymnasium.spaces.Discrete):
            return cls(sizes=(int(space.n),))
        if isinstance(space, gymnasium.spaces.MultiDiscrete):
            return cls(sizes=tuple(space.nvec.tolist()))
        policy = agent_cfg["models"].get("policy", {})  # DQN has none
        explores = getattr(agent.cfg, "exploration_noise", None) is not None
        if isinstance(space, gymnasium.spaces.Box) and (explores or any(policy.get(name) for name in CLIPS)):
            low, high = (torch.as_tensor(bound, device=device).flatten() for bound in (space.low, space.high))
            return cls(bounds=(low, high))
        return cls()

    def __call__(self, output: torch.Tensor) -> torch.Tensor:
        """Return actions, shape (n, action_dim), for outputs of the network, shape (n, size)."""
        if self.sizes:
            return torch.stack([part.argmax(dim=-1) for part in output.split(self.sizes, dim=-1)], dim=-1)
        return output if self.bounds is None else output.clamp(*self.bounds)

    def of_rollout(self, sampled: torch.Tensor, outputs: Any) -> torch.Tensor:
        """Return the most likely actions of a step of skrl.

        Args:
            sampled: Actions that skrl has sampled, or those of a policy without a distribution.
            outputs: What skrl returns beside them: ``mean_actions``, or the ``net_output`` of categorical policies.
        """
        output = outputs.get("net_output") if self.sizes else outputs.get("mean_actions")
        return sampled if output is None else self(output)
