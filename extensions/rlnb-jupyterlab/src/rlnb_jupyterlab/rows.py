"""A run as one row of the panel's list."""

from __future__ import annotations

import math
import time
from typing import Any

import rlnb

SPARK = 32
"""Points of the curve in a row."""
DIGITS = 4
ACTIVE = ("created", "queued", "starting", "running")
"""States of a run that has not ended."""
MOST_TEXT, MOST_TAGS = 2000, 20
"""Letters of a text, and tags, of one row: records are written by whoever may write into the folder."""
LATER = ("iteration", "total", "reward", "success", "spark", "eta_s")
"""What comes from event files, whose reading takes a moment."""


def row(run: rlnb.Run, key: str, *, metrics: bool = True) -> dict[str, Any]:
    """Return a run as the panel shows it; without what its event files say where that is to come later."""
    manifest, job, state = run.manifest, run.record.training, run.state
    started = job.started if job else None
    result = job.result if job and state != "lost" else None  # that of a lost one cannot be read, if there is one
    shown: dict[str, Any] = {
        "key": key,
        "id": run.id,
        "task": text(run.task),
        "library": text(run.library),
        "launcher": text(manifest.launcher),
        "device": text(started.devices[0] if started and started.devices else manifest.resources.device),
        "state": state,
        "created": text(manifest.created),
        "tags": [text(tag) for tag in run.tags][:MOST_TAGS],
        "error": text(error(result, state)),
        "iteration": 0,
        "total": int(started.max_iterations if started else manifest.max_iterations or 0),
        "reward": None,
        "success": None,
        "spark": [],
        "eta_s": None,
    }
    if metrics:
        shown["iteration"], total = run.progress
        shown["total"] = int(total or shown["total"])
        shown["reward"], shown["success"] = last(run, "reward"), last(run, "success_rate")
        shown["spark"] = spark(run)
        if started and shown["state"] == "running" and shown["iteration"] > started.first_iteration:
            pace = (time.time() - started.time_s) / (shown["iteration"] - started.first_iteration)
            shown["eta_s"] = number(pace * (shown["total"] - shown["iteration"]))
    return shown


def error(result: rlnb.Result | None, state: str) -> str:
    """Return what went wrong, unless that is the state's own word: of what was cancelled there is no more to say."""
    return result.error if result and result.error != state else ""


def text(value: object) -> str:
    """Return a value as a text of bounded length that every reader of JSON takes."""
    return str(value)[:MOST_TEXT].encode(errors="replace").decode()


def spark(run: rlnb.Run) -> list[float]:
    """Return the reward's curve in few points."""
    metrics = run.metrics
    if "reward" not in metrics.names:
        return []
    _, values = metrics["reward"].thinned(SPARK)
    return [float(f"{value:.{DIGITS}g}") for value in values]


def last(run: rlnb.Run, name: str) -> float | None:
    """Return the newest value of a metric; None where there is none."""
    metrics = run.metrics
    return number(metrics.last(name)) if name in metrics.names else None


def number(value: float | None) -> float | None:
    """Return a number as JSON knows it, with few digits."""
    return float(f"{value:.{DIGITS}g}") if value is not None and math.isfinite(value) else None
