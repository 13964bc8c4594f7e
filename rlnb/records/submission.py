"""The entry of a job in a cluster's queue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A job as the queue of its cluster knows it, as ``submitted.json`` holds it."""

    queue: str = ""
    """Kind of the queue, e.g. ``"slurm"``."""
    jobs: tuple[str, ...] = ()
    """The queue's own ids of the job."""
    dashboard: int | None = None
    """Port of the cluster's dashboard on the host of the job; None without one."""
