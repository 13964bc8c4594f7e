"""What the proof of :func:`rlnb.verify_sync`, and the result of a training, say about the ranks of a library."""

from __future__ import annotations

from collections.abc import Iterator

from rlnb.records.ranks import Ranks
from rlnb.studies.verify import Synchronisation

FIXES = {
    "parameters": "The ranks end with different parameters. Start them equal, and average the gradients with "
    "torch.distributed.all_reduce.",
    "statistics": "The ranks end with different buffers, such as the statistics of a normaliser. Use ctx.pool.",
    "observations": "The ranks collect the same data. Use ctx.seed, which differs between the ranks.",
    "parameters without synchronisation": "The ranks are equal without synchronisation too, so that equal parameters "
    "prove nothing. Synchronise with torch.distributed.all_reduce, or not at all if ctx.synchronised is False.",
}
"""The fault and its fix, by the name of the check."""


def faults_of(proof: Synchronisation) -> list[str]:
    """Return the faults of a library whose ranks do not learn as one, each with its fix; empty if they do."""
    return [
        f"{FIXES[name.partition(' of the role ')[0]]} The digests are {digests}."
        for name, digests, _, holds in proof.rows()
        if not holds
    ]


def differences_of(ranks: Ranks, world_size: int) -> Iterator[str]:
    """Yield the faults of ranks that all do the same and did not end as one, each with its fix."""
    if len(ranks.parameters) != world_size:
        fix = "Leave torch's process group open until train() returns."
        yield f"There are digests of {len(ranks.parameters)} of {world_size} ranks. {fix}"
    for name, digests in (("parameters", ranks.parameters), ("statistics", ranks.buffers)):
        if len(set(digests)) > 1:
            yield f"{FIXES[name]} The digests are {', '.join(digests)}."
