"""What runs cost, as a page shows it; the names of the fields are those of ``ts/server/protocol.ts``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rlnb
from rlnb.plugin import ENDED
from rlnb.results import Goodput
from rlnb_jupyterlab.rows import text

MOST = 10_000
"""Maximum number of runs that are counted together: 15 seconds of work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """A table of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """The goodput of some runs."""

    count: int
    """Number of runs with a training."""
    facts: Sequence[tuple[str, str]]
    """What all runs together cost."""
    parts: Sequence[str]
    """Names of the parts of the wall time."""
    seconds: Sequence[float]
    """Seconds of each part over all runs."""
    keys: Sequence[str]
    """Key of the run in each row."""
    bars: Sequence[Sequence[float]]
    """Seconds of each part of the run in each row."""
    runs: Sheet
    """A row for each run, up to a limit."""
    interruptions: Sheet
    """A row for each interruption, oldest first, up to a limit."""


def costs(runs: Mapping[str, rlnb.Run]) -> Costs:
    """Return what runs cost.

    Args:
        runs: The runs by their keys.
    """
    goodput = Goodput(tuple(account for run in runs.values() for account in _goodput(run).accounts))
    keys = {run.path: key for key, run in runs.items()}
    lines = goodput.run_lines()
    accounts = goodput.accounts[: len(lines.rows)]
    return Costs(
        count=len(goodput.accounts),
        facts=goodput.facts,
        parts=[name for name, _ in goodput.parts.items()],
        seconds=_seconds(goodput.parts.items()),
        keys=[keys[account.path] for account in accounts],
        bars=[_seconds(account.parts.items()) for account in accounts],
        runs=_sheet(*lines),
        interruptions=_sheet(*goodput.interruption_lines()),
    )


_ended: dict[Path, tuple[Sequence[int], Goodput]] = {}
"""The goodput of the runs that had ended, by their folders, and the times at which their jobs had changed: a page asks
again and again. Each request has new objects of the runs."""


def _goodput(run: rlnb.Run) -> Goodput:
    """Return ``run.goodput()``, without reading the records of an ended run again until one of its jobs changes.

    A run that is lost may be found again, so its records are read each time.
    """
    stamp = _stamp(run.path / "jobs")
    earlier, goodput = _ended.pop(run.path, ((), None))
    if goodput is None or earlier != stamp:
        goodput = run.goodput()
    if any(account.state in ENDED and account.state != "lost" for account in goodput.accounts):
        _ended[run.path] = stamp, goodput
        if len(_ended) > MOST:
            _ended.pop(next(iter(_ended)), None)
    return goodput


def _stamp(jobs: Path) -> Sequence[int]:
    """Return the times at which the folder of a run's jobs, and each of its folders, have changed, in nanoseconds."""
    try:
        with os.scandir(jobs) as entries:
            return [jobs.stat().st_mtime_ns, *(entry.stat().st_mtime_ns for entry in entries)]
    except OSError:  # the run was deleted at this moment
        return []


def _seconds(parts: Sequence[tuple[str, float]]) -> list[float]:
    """Return the seconds of each part. Unrecorded seconds, which are NaN, count as none."""
    return [0.0 if math.isnan(seconds) else round(seconds, 3) for _, seconds in parts]


def _sheet(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    return Sheet(columns=columns, rows=[[text(cell) for cell in row] for row in rows])
