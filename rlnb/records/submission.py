"""The entry of a job in a cluster's queue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """Entry of a job in its cluster's queue, as stored in ``submitted.json``."""

    queue: str = ""
    """Kind of the queue, e.g. ``"slurm"``."""
    jobs: tuple[str, ...] = ()
    """Ids that the queue gave the job."""
    dashboard: int | None = None
    """Port of the cluster's dashboard on the job's host; None if there is no dashboard."""
