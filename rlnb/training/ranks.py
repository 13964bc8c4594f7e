"""Checks of the ranks of a training: whether there may be several, their roles, and the envs that they share."""

from __future__ import annotations

from collections.abc import Iterator

from rlnb.contracts.libraries import Library
from rlnb.errors import Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.plugin import HookError
from rlnb.spec import Manifest
from rlnb.tasks.card import TaskCard

MOST_RANKS = 16
"""Largest number of ranks on each node that a fix proposes."""


def check_ranks(manifest: Manifest, library: Library | None, card: TaskCard | None) -> Iterator[Problem]:
    """Find a number of ranks that does not fit the library or its roles, and envs that they cannot share equally.

    Args:
        manifest: The run.
        library: Library of the run; None if it does not exist.
        card: Task card; None without a simulator.
    """
    ranks, nodes = manifest.resources.nproc_per_node, manifest.resources.nodes
    if library is None or not isinstance(ranks, int) or ranks * nodes < 1:
        return
    if ranks * nodes > 1 and not library.distributed:
        fix = "nproc_per_node=1" if nodes == 1 else "Use a launcher of one node, and nproc_per_node=1."
        yield Problem(what=f"{library.name} trains in one process, not in {ranks * nodes}.", fix=fix)
        return
    try:
        sharing = _ranks_with_env(manifest, library, ranks)
    except HookError as exc:
        yield Problem(what=f"{exc.what}.", fix=exc.fix)
        return
    except RlnbError as exc:
        yield Problem(what=str(exc), fix=_fewest(manifest, library))
        return
    num_envs = manifest.task.num_envs or (card.num_envs if card else None)
    if library.simulator and isinstance(num_envs, int) and sharing > 1 and num_envs % sharing:
        what = f"{num_envs} envs cannot be shared by {sharing} ranks{' that step envs' if library.roles else ''}."
        yield Problem(what=what, fix=f"num_envs={num_envs // sharing * sharing or sharing}")


def _ranks_with_env(manifest: Manifest, library: Library, nproc_per_node: int) -> int:
    """Return the number of ranks that step envs.

    Raises:
        RlnbError: The number of ranks does not fit the roles.
    """
    world_size = nproc_per_node * manifest.resources.nodes
    if not library.roles:
        return world_size
    roles = plugins.roles_of(library, world_size, manifest.agent)
    sharing = sum(role.env for role in roles)
    if library.simulator and not sharing:
        names = ", ".join(dict.fromkeys(role.name for role in roles))
        ranks = "its only rank" if world_size == 1 else f"all {world_size} ranks"
        raise RlnbError(f"{library.name} gives {ranks} the role {names}, which has no env.")
    return sharing


def _fewest(manifest: Manifest, library: Library) -> str:
    """Return the smallest number of ranks that fits the library's roles, as a fix; empty if there is none."""
    for ranks in range(1, MOST_RANKS + 1):
        try:
            _ranks_with_env(manifest, library, ranks)
        except RlnbError:
            continue
        return f"nproc_per_node={ranks}"
    return ""
