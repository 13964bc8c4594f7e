"""A run as one row of the panel's list."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import rlnb

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
    reason: str
    """Why the run waits, stands still, goes on or has ended; empty for most runs."""
    since: str
    """Begin of the wait, UTC, in ISO 8601; empty if the run does not wait, or if it is unknown."""
    iteration: int
    total: int
    """Iterations of the whole training; 0 if unknown."""
    reward: float | None
    success: float | None
    eta_s: float | None
    spark: Sequence[float] = ()
    """The reward's curve in a few points."""
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
    summary, manifest, started = run.summary(metrics=metrics), run.manifest, run.started
    return Row(
        key=key,
        id=summary.id,
        task=text(summary.task),
        library=text(summary.library),
        launcher=text(manifest.launcher),
        device=text(started.devices[0] if started and started.devices else manifest.resources.device),
        state=summary.state,
        created=summary.created.isoformat() if summary.created else "",
        tags=[text(tag) for tag in summary.tags][:MOST_TAGS],
        reason=text(summary.reason),
        since=text(summary.waits.since) if summary.waits else "",
        iteration=summary.progress.finished,
        total=summary.progress.total,
        reward=number(summary.reward),
        success=number(summary.success_rate),
        eta_s=number(summary.eta_s),
        spark=spark(run) if metrics else [],
        alerts=[AlertLine(time=text(alert.time), what=text(alert.what)) for alert in run.alerts[-MOST_ALERTS:]]
        if manifest.alerts
        else [],
    )


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


def number(value: float | None) -> float | None:
    """Return a number with a few digits; None for NaN and infinity, which JSON does not have."""
    return float(f"{value:.{DIGITS}g}") if value is not None and math.isfinite(value) else None
