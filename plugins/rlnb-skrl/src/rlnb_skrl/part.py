"""A uniform view of skrl's agents, for single-agent and multi-agent algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One agent's share of an algorithm."""

    name: str
    """The agent's name in the env; empty for a single agent."""
    policy: Any
    """The agent's policy; None if the algorithm has none."""
    modules: dict[str, Any]
    """The agent's modules in a checkpoint, by name. The dict is skrl's own: skrl saves and restores additions too."""
    scheduler: Any
    """The agent's learning-rate scheduler; None if it has none."""

    def tag(self, tag: str) -> str:
        """Return the form of a tag that skrl writes for this agent."""
        return f"{tag} ({self.name})" if self.name else tag

    def of(self, values: Any) -> Any:
        """Return this agent's share of values, which skrl keeps by agent if there are several."""
        return values[self.name] if self.name else values


def parts(agent: Any) -> list[Part]:
    """Return the parts of a skrl agent: a single one, or one for each agent of a multi-agent algorithm."""
    if not hasattr(agent, "possible_agents"):
        policy, scheduler = getattr(agent, "policy", None), getattr(agent, "scheduler", None)
        return [Part(name="", policy=policy, modules=agent.checkpoint_modules, scheduler=scheduler)]
    return [
        Part(
            name=name,
            policy=agent.policies[name],
            modules=agent.checkpoint_modules[name],
            scheduler=agent.schedulers.get(name),
        )
        for name in agent.possible_agents
    ]


def means_over(agents: list[Part], data: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Return the means over the agents of values that skrl tracks per agent, under the tags of a single agent.

    Args:
        agents: The parts of an algorithm. For a single part there are no means.
        data: skrl's tracking data, a mapping from tags to the values since the last write.
    """
    first = agents[0].tag("")
    tags = [tag.removesuffix(first) for tag in data if first and tag.endswith(first)]
    return {
        tag: [sum(sum(data[part.tag(tag)]) / len(data[part.tag(tag)]) for part in agents) / len(agents)]
        for tag in tags
        if all(part.tag(tag) in data for part in agents)
    }
