"""The parts of a run's wall time, in seconds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of a run's wall time, which begins with the run's creation. They sum to the wall time."""

    waiting_s: float = 0.0
    """Seconds from the creation of the run to its first node, in the queue and on Slurm in the checks of the nodes."""
    starting_s: float = 0.0
    """Seconds from the first node to the first iteration."""
    useful_s: float = 0.0
    """Seconds of training whose result the run kept, without those for checkpoints."""
    lost_s: float = 0.0
    """Seconds of training that an interruption took back, from the checkpoint that the next job resumed from, or from
    the last one if there was no next job, to the interruption."""
    checkpointing_s: float = math.nan
    """Seconds in which the first rank wrote the checkpoints that count as useful; NaN for runs of older versions of
    rlnb, which did not record them. They are part of ``useful_s`` then."""
    restarting_s: float = 0.0
    """Seconds from the request for each further job to its first iteration, including its wait in the queue."""
    idle_s: float = 0.0
    """Seconds between the end of a job and the request for the next; none in the cluster's restarts, and hours if a
    person had to call ``resume()``."""

    @property
    def wall_s(self) -> float:
        """The sum of the parts."""
        return sum(value for _, value in self.items() if not math.isnan(value))

    @property
    def useful_share(self) -> float:
        """Share of the wall time that was useful, 0 to 1; NaN if there is none."""
        return self.useful_s / self.wall_s if self.wall_s else math.nan

    def items(self) -> list[tuple[str, float]]:
        """Return the name of each part without its unit, and its seconds."""
        return [(field.name.removesuffix("_s"), getattr(self, field.name)) for field in dataclasses.fields(self)]


def total(parts: Iterable[Parts]) -> Parts:
    """Return the sum of the parts of several runs. Unrecorded seconds count as none, unless no run recorded any."""
    parts = [*parts]
    sums = {}
    for field in dataclasses.fields(Parts):
        values = [getattr(part, field.name) for part in parts]
        numbers = [value for value in values if not math.isnan(value)]
        sums[field.name] = sum(numbers) if numbers or not values else math.nan
    return Parts(**sums)
