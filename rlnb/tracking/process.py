"""The process that follows a run: its entry point, the new rows of the run, and the end that it reports."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rlnb.run.run import Run
    from rlnb.spec import Outcome

logger = logging.getLogger(__name__)


def main(name: str, track: Callable[[Run], None]) -> NoReturn:
    """Follow the run whose folder is the first argument of the command, then end this process.

    A failure is a warning in the job's log, and exit status 1. It does not reach the training.

    Args:
        name: Name of the tracker in the warning, such as ``"W&B"``.
        track: Function that follows the run and returns at its end. Import the tracker's package inside of it, so
            that a failure of the import is a warning too.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a cancelled run gets SIGTERM, and stdin closes too
    from rlnb.run.selection import get_run

    status = 0
    try:
        track(get_run(sys.argv[1]))
    except Exception as exc:
        logger.warning("%s no longer follows this run: %s: %s", name, type(exc).__name__, exc)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # exit handlers may wait for a service that has ended


def outcome(run: Run) -> Outcome:
    """Return how a run's newest training job ended, once stdin has closed.

    A job that was killed has no result yet. It counts as cancelled if the user cancelled it, and as failed otherwise.

    Args:
        run: The run.
    """
    if run.result is not None:
        return run.result.outcome
    training = next(job for job in reversed(run.jobs) if job.kind == "train")
    return "cancelled" if training.folder.cancel.exists() else "failed"


# -- new rows of a run -----------------------------------------------------------------------------------------------
# The event files, read by rlnb, are the only source, so a tracker works with every RL library.


POLL_S = 1.0
SHARE = 0.1
"""Largest share of one core for reading the event files; longer curves are read less often."""
SETTLE_S = 0.2
"""Seconds before the last read, because rlnb does not reread a file that it has just read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The values that a run has logged at one number of frames."""

    frames: int
    """Env transitions of all ranks up to the values."""
    iteration: float
    """Learning iteration, from 0."""
    time_s: float
    """Time of the values, in seconds since the epoch."""
    values: Mapping[str, float]
    """Values by rlnb's name (``"reward"``) and by the library's own tag."""


def follow(run: Run, *, after: float = -1) -> Iterator[list[Row]]:
    """Yield the new rows of a run's newest training job until stdin closes, and then the last ones.

    Every list has at least one row and is in the order of frames. Values that reach the disk late have a row of their
    own in a later list, with the same number of frames.

    Args:
        run: The run, whose newest training job has started.
        after: Number of frames up to which the tracker already has the run; rows up to it are left out.
    """
    counts: dict[str, int] = {}
    pause_s, ended = 0.0, False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], pause_s)[0])
        time.sleep(SETTLE_S if ended else 0.0)
        start_s = time.process_time()
        if rows := [row for row in _new_rows(run, counts) if row.frames > after]:
            yield rows
        pause_s = max(POLL_S, (time.process_time() - start_s) / SHARE)


def _new_rows(run: Run, counts: dict[str, int]) -> list[Row]:
    """Return the newest job's points since the last call, one row for each number of frames, in order.

    Args:
        run: The run.
        counts: Number of points of each name or tag that earlier calls returned; updated in place.
    """
    values: dict[int, dict[str, float]] = {}
    positions: dict[int, tuple[float, float]] = {}
    metrics, started = run.metrics, run.started
    assert started is not None, "a tracker starts after started.json is written"
    for name in dict.fromkeys([*metrics.names, *metrics.tags]):
        series = metrics[name]
        times = series.wall_time_s
        count = sum(time_s >= started.time_s for time_s in times)
        new, counts[name] = count - counts.get(name, 0), count
        if new > 0:
            tails = series.frames[-new:], series.iterations[-new:], times[-new:], series.values[-new:]
            for frames, iteration, time_s, value in zip(*tails, strict=True):
                values.setdefault(round(frames), {})[name] = value
                positions.setdefault(round(frames), (iteration, time_s))
    return [
        Row(frames=frames, iteration=positions[frames][0], time_s=positions[frames][1], values=values[frames])
        for frames in sorted(values)
    ]
