"""A run as one row of the panel's list."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import rlnb
from rlnb.plugin import ENDED, Result

SPARK = 32
"""Maximum number of points of the curve in a row."""
DIGITS = 4
MOST_TEXT, MOST_TAGS, MOST_ALERTS = 2000, 20, 5
"""Limits of a row, in characters per text, in tags and in alerts.

Anyone with write access to the folder can write records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertLine:
    """An alert of a run."""

    time: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A run in the list; the names of the fields are those of ``ts/server/protocol.ts``."""

    key: str
    id: str
    task: str
    library: str
    launcher: str
    device: str
    state: str
    created: str
    tags: Sequence[str]
    error: str
    total: int
    """Iterations of the whole training; 0 if unknown."""
    iteration: int = 0
    reward: float | None = None
    success: float | None = None
    spark: Sequence[float] = ()
    """The reward's curve in a few points."""
    eta_s: float | None = None
    reason: str = ""
    """Why the run waits, stands still or goes on; empty for most runs."""
    since: str = ""
    """Begin of the wait, UTC, in ISO 8601; empty if it is unknown."""
    alerts: Sequence[AlertLine] = ()
    """The newest alerts, oldest first."""

    def with_metrics_of(self, row: Row) -> Row:
        """Return this row with another row's fields from event files, which are slow to read."""
        return dataclasses.replace(
            self,
            iteration=row.iteration,
            total=row.total,
            reward=row.reward,
            success=row.success,
            spark=row.spark,
            eta_s=row.eta_s,
        )


def row(run: rlnb.Run, key: str, *, metrics: bool = True) -> Row:
    """Return a run as the panel shows it; its event files are read only with ``metrics``."""
    manifest, job, state = run.manifest, run.record.training, run.state
    started = job.started if job else None
    ended = state in ENDED
    waits = job.waits if job and not ended else None
    result = job.result if job and state != "lost" else None  # the result of a lost run cannot be read
    iteration, total = run.progress if metrics else (0, 0)
    total = int(total or (started.max_iterations if started else manifest.max_iterations or 0))
    return Row(
        key=key,
        id=run.id,
        task=text(run.task),
        library=text(run.library),
        launcher=text(manifest.launcher),
        device=text(started.devices[0] if started and started.devices else manifest.resources.device),
        state=state,
        created=text(manifest.created),
        tags=[text(tag) for tag in run.tags][:MOST_TAGS],
        error=text(error(result, state)),
        iteration=iteration,
        total=total,
        reward=last(run, "reward") if metrics else None,
        success=last(run, "success_rate") if metrics else None,
        spark=spark(run) if metrics else [],
        eta_s=number(run.eta_s) if metrics else None,
        reason="" if ended else text(run.record.reason_of(state)),
        since=text(waits.since) if waits else "",
        alerts=[AlertLine(time=text(alert.time), what=text(alert.what)) for alert in run.alerts[-MOST_ALERTS:]]
        if manifest.alerts
        else [],
    )


def error(result: Result | None, state: str) -> str:
    """Return the error of a result, unless it is only the name of the state, such as ``"cancelled"``."""
    return result.error if result and result.error != state else ""


def text(value: object) -> str:
    """Return a value as text of limited length that can be encoded as UTF-8."""
    return str(value)[:MOST_TEXT].encode(errors="replace").decode()


def spark(run: rlnb.Run) -> list[float]:
    """Return the reward's curve in a few points."""
    metrics = run.metrics
    if "reward" not in metrics.names:
        return []
    _, values = metrics["reward"].thinned(SPARK)
    return [float(f"{value:.{DIGITS}g}") for value in values]


def last(run: rlnb.Run, name: str) -> float | None:
    """Return the newest value of a metric; None if there is none."""
    metrics = run.metrics
    return number(metrics.last(name)) if name in metrics.names else None


def number(value: float | None) -> float | None:
    """Return a number with a few digits; None for NaN and infinity, which JSON does not have."""
    return float(f"{value:.{DIGITS}g}") if value is not None and math.isfinite(value) else None
