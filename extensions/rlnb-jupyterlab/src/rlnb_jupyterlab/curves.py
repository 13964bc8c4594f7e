"""The new points of the curves that a page shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import rlnb
from rlnb_jupyterlab.messages import CurvesMessage, Points
from rlnb_jupyterlab.pages import Page

MOST = 600
"""Maximum number of points of a curve in one message."""
MOST_NAMES = 2000
"""Maximum number of a run's metrics that a page can choose from, besides those that rlnb names."""
NAMES = "#names"
"""Key of the number of such metrics, stored with the page's point counts."""
REVISION = "#revision"
"""Key of the revision of the run's metrics, stored with the page's point counts. A change means that earlier points or
names have changed, for example because the run was resumed, and that its curves must be sent anew."""


def news(page: Page, key: str, run: rlnb.Run) -> Iterator[CurvesMessage]:
    """Yield a message with a run's new points, if there are any.

    The message has all points if the page has none yet, the run was resumed, or older points are still unread.
    """
    counts, metrics = page.watched.get(key, {}), run.metrics
    reset = not counts or counts.get(REVISION) != metrics.revision or bool(metrics.behind)
    if reset:
        counts.clear()
        counts[REVISION] = metrics.revision
    further = metrics.unnamed[:MOST_NAMES]
    has_names = counts.get(NAMES) == len(further)
    counts[NAMES] = len(further)
    shown = [*metrics.names, *({*further} & {*page.metrics})]
    series = {name: points for name in shown if (points := _points(metrics, name, counts))}
    if series or reset or not has_names:
        yield CurvesMessage(key=key, reset=reset, series=series, names=None if has_names else further)


def _points(metrics: Any, name: str, counts: dict[str, int]) -> Points | None:
    if name not in counts:
        series, counts[name] = metrics.whole(name)
    else:
        series, count = metrics.newer(name, counts[name])
        if count == counts[name]:
            return None
        counts[name] = count
    x, y = series.thinned(MOST)
    return Points(x=_plain(x), y=_plain(y)) if len(x) else None


def _plain(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in values]
