"""The scalars of one tag in memory."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Scalar = tuple[int, float, float]
"""Step, wall time in seconds since the epoch, value."""


class Column:
    """The scalars of one tag in the order of writing, at 24 bytes per scalar.

    Attributes:
        restarts: Index and step of each restart that the file announces: scalars before the index were written before
            the restart, and those at the step or later are replaced.
    """

    __slots__ = ("_steps", "_times", "_values", "restarts")

    def __init__(self) -> None:
        self._steps, self._times, self._values = array("q"), array("d"), array("d")
        self.restarts: list[tuple[int, int]] = []

    @classmethod
    def of(cls, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Column:
        """Return a column of steps, wall times and values, each of shape (n,)."""
        column = cls()
        column.append_arrays(*arrays)
        return column

    def append(self, step: int, time: float, value: float) -> None:
        """Append a scalar; ``time`` is in seconds since the epoch."""
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def append_arrays(self, steps: np.ndarray, times: np.ndarray, values: np.ndarray) -> None:
        """Append steps, wall times and values, each of shape (n,)."""
        self._steps.frombytes(steps.astype("int64").tobytes())
        self._times.frombytes(times.astype("float64").tobytes())
        self._values.frombytes(values.astype("float64").tobytes())

    def extend(self, other: Column, start: int = 0) -> None:
        """Append the scalars of another column from an index on."""
        self._steps.extend(other._steps[start:])
        self._times.extend(other._times[start:])
        self._values.extend(other._values[start:])

    def restart(self, step: int) -> None:
        """Note that the training was restarted at a step, which replaces the scalars from there on."""
        if self.restarts and self.restarts[-1][0] == len(self):
            step = min(step, self.restarts.pop()[1])
        self.restarts.append((len(self), step))

    def arrays(self, start: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps (int64), wall times (float64, seconds since the epoch) and values (float64) as copies.

        Args:
            start: Index of the first scalar to return.
        """
        import numpy as np

        steps, times, values = (memoryview(part)[start:] for part in (self._steps, self._times, self._values))
        return np.array(steps), np.array(times), np.array(values)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> Scalar:
        return self._steps[index], self._times[index], self._values[index]

    def __iter__(self) -> Iterator[Scalar]:
        return zip(self._steps, self._times, self._values, strict=True)


Columns = defaultdict[str, Column]
"""Columns by tag."""
