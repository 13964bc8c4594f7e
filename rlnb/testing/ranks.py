"""What the proof of :func:`rlnb.verify_sync` says about the ranks of a library."""

from __future__ import annotations

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
    return [f"{FIXES[name]} The digests are {digests}." for name, digests, _, holds in proof.rows() if not holds]
