"""Robust statistics of one metric over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


class Curve:
    """The finite values of a metric, in order.

    All statistics are medians over parts of the training, so that single outliers do not matter.

    Args:
        values: Values of shape (n,).
    """

    def __init__(self, values: np.ndarray) -> None:
        import numpy as np

        finite = np.isfinite(values)
        self.values = values[finite]
        self.lost = int((~finite).sum())
        """Number of values that are not finite."""
        self.lost_later = int((~finite)[int(finite.argmax()) :].sum()) if finite.any() else 0
        """Number of them after the first finite value. A statistic of nothing yet is nan before it, and only then."""

    def __len__(self) -> int:
        return len(self.values)

    def part(self, begin: float, end: float) -> np.ndarray:
        """Return the values between two shares of the training, 0 to 1, at least one value."""
        first = min(int(begin * len(self)), len(self) - 1)
        return self.values[first : max(first + 1, round(end * len(self)))]

    def median(self, begin: float, end: float) -> float:
        """Return the median of the values between two shares of the training."""
        import numpy as np

        return float(np.median(self.part(begin, end)))

    @property
    def first(self) -> float:
        """Median of the first tenth."""
        return self.median(0.0, 0.1)

    @property
    def last(self) -> float:
        """Median of the last tenth."""
        return self.median(0.9, 1.0)

    @property
    def noise(self) -> float:
        """Standard deviation of the values about their trend, from the differences of neighbours.

        For normal noise, the median of the absolute differences is 0.954 standard deviations.
        """
        import numpy as np

        return float(np.median(np.abs(np.diff(self.values)))) / 0.954 if len(self) > 1 else 0.0

    def smooth(self) -> np.ndarray:
        """Return the medians of twenty equal parts, or of fewer if there are fewer values."""
        import numpy as np

        return np.array([np.median(part) for part in np.array_split(self.values, min(20, len(self)))])
