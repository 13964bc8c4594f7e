"""One metric of a run as a curve, and how the jobs of the run count steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from rlnb.metrics.columns import Column, Scalar

if TYPE_CHECKING:
    import numpy as np

N = TypeVar("N", float, "np.ndarray")


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """How one training job counts steps on the library's x axis."""

    start_time: float
    """Start of the job, in seconds since the epoch."""
    frames_per_step: float
    """Frames per unit of the library's x axis."""
    steps_per_iteration: float
    """Units of the library's x axis per learning iteration."""
    logged_at_end: bool = False
    """Whether an iteration logs at the step where it ended; otherwise it logs at the step where it began."""
    logged: Mapping[str, int] = field(default_factory=dict)
    """Bytes at which event files of earlier jobs end, by path below the logs; other files are read to their end."""

    def iteration(self, step: N) -> N:
        """Return the learning iteration, from 0, of a point on the library's x axis."""
        return step / self.steps_per_iteration - float(self.logged_at_end)

    def frames(self, step: N) -> N:
        """Return the frames at the end of the iteration that logged at ``step``."""
        return self.frames_per_step * (step if self.logged_at_end else step + self.steps_per_iteration)


def ends_of(spans: Sequence[Span]) -> dict[str, int]:
    """Return the bytes at which event files end, by path below the logs; an earlier job counts before a later one."""
    return {path: size for span in reversed(spans) for path, size in span.logged.items()}


class Series:
    """One metric over a run, in order of frames; a resumed run is one curve."""

    def __init__(self, name: str, points: Column | Sequence[Scalar], spans: Sequence[Span]) -> None:
        """Make a curve of points in order.

        Args:
            name: Metric name or raw tag.
            points: (step, wall time in seconds since the epoch, value), without those that a later job has replaced.
            spans: How each job of the run counts steps.
        """
        import numpy as np

        if isinstance(points, Column):
            arrays = points.arrays()
        else:
            steps, times, values = (np.array([point[part] for point in points]) for part in range(3))
            arrays = steps, times, values
        self._set(name, arrays, spans)

    @classmethod
    def of(cls, name: str, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], spans: Sequence[Span]) -> Series:
        """Return a curve of points already in order: steps, wall times and values, each of shape (n,)."""
        series = cls.__new__(cls)
        series._set(name, arrays, spans)
        return series

    def _set(self, name: str, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], spans: Sequence[Span]) -> None:
        self.name, self._spans = name, spans
        self._steps, self._times, self._values = arrays

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> float:
        """The newest value; NaN if there is none."""
        return float(self._values[-1]) if len(self) else float("nan")

    @property
    def points(self) -> list[Scalar]:
        """Step, wall time in seconds since the epoch, value of each point."""
        return list(zip(self._steps.tolist(), self._times.tolist(), self._values.tolist(), strict=True))

    @property
    def values(self) -> list[float]:
        return self.array("values").tolist()  # type: ignore[no-any-return]

    @property
    def wall_time_s(self) -> list[float]:
        """Time of each point, in seconds since the epoch."""
        return self.array("wall_time").tolist()  # type: ignore[no-any-return]

    @property
    def frames(self) -> list[float]:
        """Env transitions of all ranks up to each point."""
        return self.array("frames").tolist()  # type: ignore[no-any-return]

    @property
    def iterations(self) -> list[float]:
        """Learning iteration of each point, from 0."""
        return self.array("iterations").tolist()  # type: ignore[no-any-return]

    def array(self, what: Literal["values", "wall_time", "frames", "iterations"]) -> np.ndarray:
        """Return one of the lists as a float64 array, for curves of millions of points."""
        import numpy as np

        if what == "values":
            return self._values.astype(np.float64)
        if what == "wall_time":
            return self._times.astype(np.float64)
        numbers = np.empty(len(self))
        spans = self._spans or [Span(start_time=0.0, frames_per_step=1.0, steps_per_iteration=1.0)]
        # A point belongs to the last job started before it; points before every job belong to the first job. A clock
        # that was set back does not return the points that follow to an earlier job.
        of = np.searchsorted([span.start_time for span in spans], self._times, side="right") - 1
        of = np.maximum.accumulate(np.maximum(of, 0)) if len(of) else of
        for number, span in enumerate(spans):
            mine = of == number
            steps = self._steps[mine].astype(np.float64)
            numbers[mine] = span.frames(steps) if what == "frames" else span.iteration(steps)
        return numbers

    def thinned(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return frames and values of at most ``most`` points that keep the curve's extremes and shape, without NaN."""
        import numpy as np

        frames, values = self.array("frames"), self.array("values")
        finite = np.isfinite(values)
        return decimate(frames[finite], values[finite], most)

    def __repr__(self) -> str:
        return f"Series({self.name!r}, {len(self)} points, last={self.last:.4g})"


# -- fewer points ----------------------------------------------------------------------------------------------------


def decimate(xs: np.ndarray, ys: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``points`` points that keep the curve's extremes and shape (MinMaxLTTB).

    Source: Van Der Donckt et al., MinMaxLTTB: Leveraging MinMax-Preselection to Scale LTTB
    (2023), as implemented by tsdownsample.
    """
    if len(xs) <= points:
        return xs, ys
    import numpy as np
    from tsdownsample import MinMaxLTTBDownsampler

    places = MinMaxLTTBDownsampler().downsample(np.ascontiguousarray(xs), np.ascontiguousarray(ys), n_out=points)
    return xs[places], ys[places]
