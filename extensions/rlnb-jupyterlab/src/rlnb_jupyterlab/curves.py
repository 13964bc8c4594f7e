"""What a page has not been told of the curves that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import rlnb
from rlnb_jupyterlab.pages import Page

MOST = 600
"""Points of a curve that is sent as a whole."""
JOBS = "#jobs"
"""Beside the metrics' counts of points: that of the jobs that made them. A resumed run's curves begin anew."""


def news(page: Page, key: str, run: rlnb.Run) -> Iterator[dict[str, Any]]:
    """Yield a message if a run has logged something, or all of it to a page that has none."""
    seen, metrics = page.watched.get(key, {}), run.metrics
    reset = not seen or seen.get(JOBS) != metrics.jobs or bool(metrics.behind)
    if reset:
        seen.clear()
        seen[JOBS] = metrics.jobs
    series = {name: found for name in metrics.names if (found := _points(metrics, name, seen))}
    if series or reset:
        yield {"type": "curves", "key": key, "reset": reset, "series": series}


def _points(metrics: Any, name: str, seen: dict[str, int]) -> dict[str, list[float]] | None:
    if name not in seen:
        series, seen[name] = metrics.whole(name)
    else:
        series, count = metrics.newer(name, seen[name])
        if count == seen[name]:
            return None
        seen[name] = count
    x, y = series.thinned(MOST)
    return {"x": _plain(x), "y": _plain(y)} if len(x) else None


def _plain(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in values]
