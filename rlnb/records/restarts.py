"""A training that continues an interrupted one by itself: the number of the restart, and its cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlnb.spec import Result

GIVEN_BACK = "given_back"
"""Key among the values of a result: the job gave its nodes back before it trained, which is no interruption."""
LAUNCH_FAILED = "launch_failed"
"""The same of a job that a node could not start, such as one whose Prolog fails."""
MOST_LAUNCH_FAILURES = 1
"""Number of failed launches in a row after which a training is submitted once more."""


def never_trained(result: Result) -> bool:
    """Return whether a job has ended before it trained, for a reason that lies with the nodes."""
    return bool(result.values.get(GIVEN_BACK) or result.values.get(LAUNCH_FAILED))


def interruptions(results: Iterable[Result | None]) -> int:
    """Return how many of a run's trainings its cluster has interrupted, from their results."""
    return sum(result is not None and result.interrupted and not never_trained(result) for result in results)


def launch_failures(results: Sequence[Result | None]) -> int:
    """Return how many of a run's newest trainings have failed in a row because a node could not start them.

    Args:
        results: The results of all trainings, oldest first.
    """
    newest_first = (result is not None and bool(result.values.get(LAUNCH_FAILED)) for result in reversed(results))
    return sum(1 for _ in itertools.takewhile(bool, newest_first))


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
