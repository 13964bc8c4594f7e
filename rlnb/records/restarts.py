"""A training that continues an interrupted one by itself: the number of the restart, and its cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rlnb.spec import Result

GIVEN_BACK = "given_back"
"""Key among the values of a result: the job gave its nodes back before it trained, which is no interruption."""


def interruptions(results: Iterable[Result | None]) -> int:
    """Return how many of a run's trainings its cluster has interrupted, from their results."""
    return sum(result is not None and result.interrupted and not result.values.get(GIVEN_BACK) for result in results)


@dataclass(frozen=True, kw_only=True, slots=True)
class Restart:
    """One of the restarts of a run after an interruption by its cluster."""

    number: int
    """Number of the restart, from 1."""
    most: int
    """Number of restarts after which the training is not continued."""
    cause: str
    """End of the training before, such as ``"node 1 (gpu07) is lost: ..."``; empty if its record is unreadable."""

    @property
    def count(self) -> str:
        """The number of the restart as text, such as ``"restart 2 of 3"``."""
        return f"restart {self.number} of {self.most}"

    def __str__(self) -> str:
        return f"{self.count} after: {self.cause}" if self.cause else self.count
