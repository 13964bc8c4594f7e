"""What the ranks of a training with roles tell each other before it starts: their devices, envs and agent config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlnb.configs import tree
from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.storage.serial import from_json, to_json
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.context import Context


@dataclass(frozen=True, kw_only=True, slots=True)
class RankFacts:
    """What one rank tells the others."""

    roles: tuple[str, ...]
    """Role of each rank, as this rank knows them."""
    device: str
    """Its device."""
    num_envs: int = 0
    """Number of its envs."""
    agent: Json = None
    """Agent config of the task; None from a rank without an env."""
    asset_root: str = ""
    """Folder or URL of robot assets, and the rule that chose it."""
    assets: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the asset files in use, by path."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the modules of the user's own packages that define the task, by name."""


def exchange(ctx: Context, agent_cfg: Any) -> Any:
    """Complete the context of a rank by what other ranks know, and return the agent config.

    A rank without an env gets the agent config as nested dicts, since the config's own class may need Isaac Lab.

    Args:
        ctx: Context of this rank.
        agent_cfg: Agent config of the task; None on a rank without an env.

    Raises:
        RlnbError: The ranks have got different roles from the library's plugin.
    """
    if not ctx.roles:
        ctx.num_envs = ctx.num_envs_here * ctx.world_size
        return agent_cfg
    this = RankFacts(
        roles=tuple(role.name for role in ctx.roles),
        device=ctx.device,
        num_envs=ctx.num_envs_here,
        agent=tree.tree(agent_cfg) if ctx.has_env else None,
        asset_root=ctx.asset_root,
        assets=ctx.assets,
        sources=ctx.sources,
    )
    facts = [from_json(RankFacts, entry) for entry in ranks.gather(to_json(this))]
    for rank, other in enumerate(facts):
        if other.roles != this.roles:
            raise RlnbError(
                f"Rank {ctx.rank} has got the roles {', '.join(this.roles)}, but rank {rank} {', '.join(other.roles)}. "
                "Library.roles must name a function that returns the same roles in every process."
            )
    ctx.num_envs = sum(other.num_envs for other in facts)
    ctx.devices = tuple(other.device for other in facts)
    if ctx.world_size > 1:
        ctx.group = ranks.group_of(this.roles, ctx.devices)
    if ctx.has_env:
        return agent_cfg
    first = facts[ctx.ranks_with_env[0]]
    ctx.asset_root, ctx.assets, ctx.sources = first.asset_root, first.assets, first.sources
    return first.agent
