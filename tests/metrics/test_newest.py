"""The names and last values of a run without its curves are those of its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.hooks import plugins
from rlnb.metrics.metrics import LastPoint, LastValues, Metrics, last_points
from rlnb.metrics.series import Span

EVENT_FILES = Path(__file__).with_name("event_files")
SPANS = [Span(start_time=0.0, frames_per_step=4.0, steps_per_iteration=2.0)]


@pytest.mark.parametrize("library", [None, "rsl_rl", "skrl", "rl_games", "sb3"])
@pytest.mark.parametrize("package", sorted(path.name for path in EVENT_FILES.iterdir() if path.is_dir()))
def test_last_values_are_named_as_metrics_are(package: str, library: str | None) -> None:
    spec = plugins.library(library) if library else None
    metrics = Metrics(EVENT_FILES / package, spec, SPANS)
    newest = LastValues(last_points(EVENT_FILES / package, {})[0], spec, SPANS)
    assert (newest.names, newest.tags, newest.of_task) == (metrics.names, metrics.tags, metrics.of_task)
    assert newest.iteration == metrics.iteration
    assert newest.tags
    for name in (*newest.names, *newest.tags, "reward", "none"):
        assert (name in newest) == (name in metrics)
        assert repr(newest.last(name)) == repr(metrics.last(name))


def test_a_curve_without_points_has_a_name_and_no_value() -> None:
    points = [LastPoint(tag="gone", folder="", step=None, value=float("nan"))]
    newest = LastValues(points, None, SPANS)
    assert newest.tags == ["gone"]
    assert newest.iteration == -1
    assert repr(newest.last("gone")) == "nan"
    assert newest.refresh() == 0
