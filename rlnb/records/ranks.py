"""Digests that the result of a training keeps for each rank: of its parameters and of its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlnb.spec import Result
from rlnb.storage.serial import from_json

KEY = "ranks"
"""Key of the ranks in the values of a result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Digests of a training, one per rank.

    Synchronised ranks end with equal parameters and buffers, although their observations differ. Ranks of different
    roles may have learned different modules.
    """

    parameters: tuple[str, ...]
    """Digest of the trained parameters."""
    buffers: tuple[str, ...]
    """Digest of the running statistics, such as those of a normaliser."""
    observations: tuple[str, ...]
    """Digest of the first observations; empty for a rank without envs."""
    communication: tuple[float, ...] = ()
    """Share of its time, 0 to 1, that a rank spent in all_reduce; empty if it was not measured."""
    roles: tuple[str, ...] = ()
    """Role of each rank; empty if all ranks did the same."""


def by_role(roles: Sequence[str], values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of the ranks of each role, by role; by an empty string if all ranks did the same.

    Args:
        roles: Role of each rank; empty if all ranks did the same.
        values: Value of each rank.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for role, value in zip(roles or [""] * len(values), values, strict=True):
        groups[role] = (*groups.get(role, ()), value)
    return groups


def ranks_of(result: Result | None) -> Ranks | None:
    """Return the ranks in a training's result; None before the end, and for a library without a simulator.

    Raises:
        RlnbError: The result has ranks, but one of their values is missing or of the wrong type.
    """
    values = result.values.get(KEY) if result else None
    return from_json(Ranks, values, ignore_unknown=True) if isinstance(values, Mapping) else None
