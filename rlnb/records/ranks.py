"""The ranks of a training as its result keeps them: what each of them learned, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlnb.spec import Result
from rlnb.storage.serial import from_json

KEY = "ranks"
"""Name of the ranks among the values of a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Digests of a training, one for each rank.

    Ranks that learn as one end with equal parameters and buffers, though their observations differ.
    """

    parameters: tuple[str, ...]
    """Digest of the trained parameters."""
    buffers: tuple[str, ...]
    """Digest of the running statistics."""
    observations: tuple[str, ...]
    """Digest of the first observations."""
    communication: tuple[float, ...] = ()
    """Share of its time, 0 to 1, that a rank spent in sums over all ranks; empty where nobody measured it."""


def ranks_of(result: Result | None) -> Ranks | None:
    """Return the ranks of a training by its result; None for a library without a simulator, and before the end.

    Raises:
        RlnbError: The result names ranks, and a value of theirs is missing or of another type.
    """
    values = result.values.get(KEY) if result else None
    return from_json(Ranks, values, ignore_unknown=True) if isinstance(values, Mapping) else None
