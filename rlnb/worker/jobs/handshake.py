"""The first thing that ranks do together: add up a number, within a bound, or say who did not."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

from rlnb.errors import RlnbError

WITHIN_S = float(os.environ.get("RLNB_MEET_S", "60"))
"""Seconds that the slowest rank may be behind the first. Their agents began together."""


def meet(store: Any, rank: int, world_size: int, within_s: float = WITHIN_S) -> None:
    """Add up a number with all other ranks, by gloo, on the network that they will learn over.

    Args:
        store: A torch store that all ranks share.
        rank: This one.
        world_size: How many there are.
        within_s: Seconds that it may take.

    Raises:
        RlnbError: Not all did; names the ranks that are not there and their hosts.
    """
    import torch
    import torch.distributed as dist

    ranks, limit = dist.PrefixStore("rlnb", store), timedelta(seconds=within_s)
    ranks.set(f"here/{rank}", socket.gethostname())
    try:
        ranks.wait([f"here/{other}" for other in range(world_size)], limit)
    except dist.DistStoreError as exc:
        raise RlnbError(_absent(ranks, world_size, within_s)) from exc
    try:
        # A group of its own, since a bound for this is none for what the ranks do later, such as to save.
        dist.init_process_group(
            "gloo", store=dist.PrefixStore("meet", store), rank=rank, world_size=world_size, timeout=limit
        )
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
    except RuntimeError as exc:  # what gloo raises has no type of its own
        hosts = sorted({ranks.get(f"here/{other}").decode() for other in range(world_size)})
        raise RlnbError(
            f"All {world_size} ranks are there, but rank {rank} ({socket.gethostname()}) could not add up a number "
            f"with the others within {within_s:.0f} s ({', '.join(hosts)}). A firewall closes ports between them, or "
            f'they found the wrong network: interface="eth0", say, names the right one (`ip addr` lists them). '
            f"torch says: {exc}"
        ) from exc


def _absent(ranks: Any, world_size: int, within_s: float) -> str:
    hosts = {rank: ranks.get(f"here/{rank}").decode() for rank in range(world_size) if ranks.check([f"here/{rank}"])}
    absent = [rank for rank in range(world_size) if rank not in hosts]
    beside = {hosts[rank] for rank in _neighbours(absent, world_size) if rank in hosts}
    where = (
        f", probably on {' or '.join(sorted(beside))}"
        if beside
        else f"; here are {', '.join(sorted(set(hosts.values())))}"
    )
    return (
        f"{'Rank' if len(absent) == 1 else 'Ranks'} {', '.join(map(str, absent))} of {world_size} did not answer "
        f"within {within_s:.0f} s{where}. The logs of the nodes say what they do instead: run.logs()"
    )


def _neighbours(absent: list[int], world_size: int) -> set[int]:
    """Return the other ranks of the absent ranks' nodes."""
    per_node = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    nodes = {rank // per_node for rank in absent}
    return {rank for rank in range(world_size) if rank // per_node in nodes}
