"""A run as one row of the panel's list."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import rlnb

SPARK = 32
"""Maximum number of points of the curve in a row."""
DIGITS = 4
SHOWN = ("task", "library", "launcher", "tags")
"""Arguments that a row has as fields of their own."""
MOST_TEXT, MOST_TAGS, MOST_ALERTS = 2000, 20, 5
MOST_ARGUMENTS, MOST_VALUE = 60, 100
"""Limits of a row, in characters per text, in tags, alerts and arguments, and in characters per argument.

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
    name: str
    """The name that the user gave the run; empty without one."""
    task: str
    library: str
    launcher: str
    device: str
    state: str
    created: str
    tags: Sequence[str]
    metrics: Mapping[str, float]
    """The last value of each metric that rlnb names, but for reward and success."""
    arguments: Mapping[str, str | float]
    """The arguments of the run, such as ``seed`` and ``agent.algorithm.learning_rate``, but for task and library."""
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
            metrics=row.metrics,
            spark=row.spark,
            eta_s=row.eta_s,
        )


def row(run: rlnb.Run, key: str, *, metrics: bool = True) -> Row:
    """Return a run as the panel shows it; its event files are read only with ``metrics``."""
    summary, manifest, started = run.summary(metrics=metrics), run.manifest, run.started
    return Row(
        key=key,
        id=summary.id,
        name=text(summary.name),
        task=text(summary.task),
        library=text(summary.library),
        launcher=text(manifest.launcher),
        device=text(started.devices[0] if started and started.devices else manifest.resources.device),
        state=summary.state,
        created=summary.created.isoformat() if summary.created else "",
        tags=[text(tag) for tag in summary.tags][:MOST_TAGS],
        metrics=_metrics(summary.metrics),
        arguments=arguments(run),
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


def arguments(run: rlnb.Run) -> dict[str, str | float]:
    """Return the arguments by which a list sorts, groups and tells runs apart; numbers stay numbers."""
    given = ((name, value) for name, value in run.arguments.items() if name not in SHOWN)
    return {
        text(name)[:MOST_VALUE]: value if is_number(value) else text(value)[:MOST_VALUE]
        for name, value in itertools.islice(given, MOST_ARGUMENTS)
    }


def _metrics(values: Mapping[str, float]) -> dict[str, float]:
    """Return the last values of metrics, without those that a row has as fields of their own."""
    kept = {name: number(value) for name, value in values.items() if name not in ("reward", "success_rate")}
    return {
        text(name)[:MOST_VALUE]: value
        for name, value in itertools.islice(kept.items(), MOST_ARGUMENTS)
        if value is not None
    }


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that JSON has."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
