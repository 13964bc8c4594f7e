"""A part of the work on a GPU: its device, its time, and its rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from results import ratio_interval, record

from gpu import kernels

Value = TypeVar("Value")

FEWEST = 3
"""Least number of pairs of a row."""
ENOUGH = 10
"""Number of pairs from which on a row can hold."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the work on a GPU.

    A rehearsal on a CPU runs the same lines with smaller sizes. Its rows have names of their own.
    """

    device: str
    """``"cuda:0"``, or ``"cpu"`` for a rehearsal."""
    minutes: float
    """Time of the part. What has not begun by then is left out."""
    began_s: float = field(default_factory=time.time)
    recorded: list[str] = field(default_factory=list)
    """Names of the rows so far."""

    @property
    def is_rehearsal(self) -> bool:
        return self.device == "cpu"

    @property
    def left_s(self) -> float:
        """Seconds of the part that are left; negative if it is over."""
        return self.began_s + 60.0 * self.minutes - time.time()

    def size(self, on_gpu: Value, on_cpu: Value) -> Value:
        """Return the size of something: that of a rehearsal is smaller."""
        return on_cpu if self.is_rehearsal else on_gpu

    def record(self, what: str, value: str, bound: str, holds: bool) -> None:
        """Record a row."""
        self.recorded.append(what)
        record(f"{'rehearsal on a CPU' if self.is_rehearsal else 'GPU'}, {what}", value, bound, holds)

    def record_pairs(
        self,
        what: str,
        pairs: Sequence[tuple[float, float]],
        unit: str,
        *,
        at_least: float,
        low: float,
        proved: bool = True,
    ) -> None:
        """Record the median ratio of pairs of rates, once there are a few.

        It does not hold with fewer than ten pairs, or if it is not proved that what it compares has happened.
        """
        if len(pairs) < FEWEST:
            return
        ratio, lower, upper = ratio_interval(pairs)
        first, second = (sorted(side)[len(pairs) // 2] for side in zip(*pairs, strict=True))
        self.record(
            what,
            f"{ratio:.3f} ({lower:.3f} to {upper:.3f}), {len(pairs)} pairs; {first:,.2f} and {second:,.2f} {unit}",
            f"median >= {at_least:g}, low >= {low:g}, of {ENOUGH} pairs or more",
            ratio >= at_least and lower >= low and len(pairs) >= ENOUGH and proved,
        )

    def record_time(self, name: str) -> None:
        """Record the time of the part so far, with that of its kernels apart."""
        minutes = (time.time() - self.began_s) / 60.0
        count, seconds = kernels.compiled_since(self.began_s)
        text = f"{minutes:.1f} min; {count} modules of kernels compiled in {seconds:.0f} s, summed over all processes"
        self.record(f"{name}: time", text, f"<= {self.minutes + 1:g} min", minutes <= self.minutes + 1.0)


Measure = Callable[[Part, float], None]
"""Measures something within some seconds, and records it."""


def run(part: Part, name: str, measures: Sequence[tuple[str, Measure]]) -> bool:
    """Run measures one after another, and divide the time that is left among those to come.

    A measure that fails, or that there is no time for, has a row that says so; the others go on.

    Args:
        part: The part.
        name: Its name in the results.
        measures: What each one measures, and the function that does it.

    Returns:
        Whether all have run to their ends.
    """
    whole = True
    for number, (what, measure) in enumerate(measures):
        part.record_time(name)
        if part.left_s <= 0:
            part.record(what, "not measured: the time of the part was over", "it is measured", False)
            whole = False
            continue
        part.recorded.clear()
        try:
            measure(part, part.left_s / (len(measures) - number))
            if not part.recorded:
                raise TimeoutError(f"fewer than {FEWEST} pairs in its share of the time")
        except Exception as exc:
            lines = str(exc).strip().splitlines() or [""]
            part.record(what, f"not measured: {type(exc).__name__}: {lines[0][:200]}", "it is measured", False)
            whole = False
    part.record_time(name)
    return whole
