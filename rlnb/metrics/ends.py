"""The last point of each curve of some event files, without the curves in memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.metrics.columns import Column, Scalar
from rlnb.metrics.events import EventReader
from rlnb.metrics.folders import Curve
from rlnb.metrics.newest import LastPoint
from rlnb.spec import SYSTEM

if TYPE_CHECKING:
    import numpy as np


class _End(Column):
    """The last scalar of a tag in one file, and the smallest step of the restarts after it."""

    __slots__ = ("last", "restarted")

    def __init__(self) -> None:
        super().__init__()
        self.last: Scalar | None = None
        self.restarted: int | None = None

    def append(self, step: int, time: float, value: float) -> None:
        self.last, self.restarted = (step, time, value), None

    def append_arrays(self, steps: np.ndarray, times: np.ndarray, values: np.ndarray) -> None:
        if len(steps):
            self.append(int(steps[-1]), float(times[-1]), float(values[-1]))

    def restart(self, step: int) -> None:
        self.restarted = step if self.restarted is None else min(step, self.restarted)


class _EndReader(EventReader):
    """Reads event files once, and keeps the last point of each curve only."""

    _column = _End

    def points(self, limit_s: float) -> list[LastPoint] | None:
        """Return the last point of each curve; None if a restart has removed one, so that an earlier one counts."""
        self._read_files(time.monotonic() + limit_s)
        self._name()
        points = []
        for curve in self.curves.values():
            last, restarted = _last(curve)
            if last is None or (restarted is not None and last[0] >= restarted):
                return None
            points.append(LastPoint(tag=curve.tag, folder=curve.folder, step=last[0], value=last[2]))
        return points


def _last(curve: Curve) -> tuple[Scalar | None, int | None]:
    """Return the point of a curve that was written last, and the smallest step of the restarts after it."""
    restarts: list[int | None] = []
    for file in reversed(curve.files):
        column = file.scalars.get(curve.tag)
        if isinstance(column, _End):
            restarts.append(column.restarted)
            return column.last, min((step for step in restarts if step is not None), default=None)
        restarts.append(file.restart)
    return None, None


def last_points(logs: Path, ends: Mapping[str, int], limit_s: float = math.inf) -> tuple[Sequence[LastPoint], bool]:
    """Return the last point of each curve, the oldest folder of each tag first, and whether all files were read whole.

    Args:
        logs: Folder of the event files of a run.
        ends: Number of bytes of a file to read, by path below the folder; other files are read to their end.
        limit_s: Seconds after which reading stops.
    """
    deadline = time.monotonic() + limit_s
    reader = _EndReader(logs, without=SYSTEM)
    reader.end_at(ends)
    points = reader.points(limit_s)
    if points is not None:
        return points, reader.is_whole
    whole = EventReader(logs, without=SYSTEM)
    whole.end_at(ends)
    whole.refresh(deadline - time.monotonic())
    return [_point(curve) for curve in whole.curves.values()], whole.is_whole


def _point(curve: Curve) -> LastPoint:
    last = curve.column[-1] if len(curve.column) else None
    return LastPoint(
        tag=curve.tag,
        folder=curve.folder,
        step=None if last is None else last[0],
        value=math.nan if last is None else last[2],
    )
