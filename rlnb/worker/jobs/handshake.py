"""The ranks' handshake: they sum a number within a time limit, or report which ranks did not take part."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

from rlnb.errors import RlnbError

WITHIN_S = float(os.environ.get("RLNB_MEET_S", "60"))
"""Seconds that the slowest rank may be behind the first one. The ranks' agents start together."""


def meet(store: Any, rank: int, world_size: int, within_s: float = WITHIN_S) -> None:
    """Sum a number over all ranks with gloo, on the network that the training will use.

    Args:
        store: A torch store that all ranks share.
        rank: This rank.
        world_size: Number of ranks.
        within_s: Time limit in seconds.

    Raises:
        RlnbError: Not all ranks took part. The error names the missing ranks and, if possible, their hosts.
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
        # A separate process group: its timeout must not apply to later waits, for example while rank 0 saves.
        dist.init_process_group(
            "gloo", store=dist.PrefixStore("meet", store), rank=rank, world_size=world_size, timeout=limit
        )
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
    except RuntimeError as exc:  # gloo's errors have no type of their own
        hosts = sorted({ranks.get(f"here/{other}").decode() for other in range(world_size)})
        raise RlnbError(
            f"All {world_size} ranks have started, but rank {rank} ({socket.gethostname()}) could not sum a number "
            f"with the others within {within_s:.0f} s ({', '.join(hosts)}). A firewall blocks ports between the hosts, "
            f'or the ranks chose the wrong network. Set the right one with interface="eth0", for example (`ip addr` '
            f"lists the interfaces). Error from torch: {exc}"
        ) from exc


def _absent(ranks: Any, world_size: int, within_s: float) -> str:
    hosts = {rank: ranks.get(f"here/{rank}").decode() for rank in range(world_size) if ranks.check([f"here/{rank}"])}
    absent = [rank for rank in range(world_size) if rank not in hosts]
    shared = {hosts[rank] for rank in _neighbours(absent, world_size) if rank in hosts}
    where = (
        f", probably on {' or '.join(sorted(shared))}"
        if shared
        else f"; the others are on {', '.join(sorted(set(hosts.values())))}"
    )
    return (
        f"{'Rank' if len(absent) == 1 else 'Ranks'} {', '.join(map(str, absent))} of {world_size} did not answer "
        f"within {within_s:.0f} s{where}. The logs of the nodes may show the reason: run.logs()"
    )


def _neighbours(absent: list[int], world_size: int) -> set[int]:
    """Return all ranks on the nodes of the absent ranks."""
    per_node = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    nodes = {rank // per_node for rank in absent}
    return {rank for rank in range(world_size) if rank // per_node in nodes}
