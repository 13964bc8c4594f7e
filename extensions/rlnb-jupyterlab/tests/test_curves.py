"""A page gets each point of a curve once."""

from __future__ import annotations

from pathlib import Path

from asking import echo
from rlnb_jupyterlab import curves
from rlnb_jupyterlab.pages import Page
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb


def test_all_points_come_first_and_then_the_new_ones_only(root: Path) -> None:
    run = echo().wait(60)
    page = Page(send=lambda _: None, watched={"key": {}})
    (message,) = curves.news(page, "key", run)
    assert message.reset
    assert len(message.series["reward"].x) == 3
    assert list(curves.news(page, "key", run)) == []


def test_a_further_job_of_a_run_sends_its_curves_from_the_start(root: Path) -> None:
    run = echo().wait(60)
    page = Page(send=lambda _: None, watched={"key": {}})
    list(curves.news(page, "key", run))
    page.watched["key"][curves.REVISION] -= 1
    (message,) = curves.news(page, "key", run)
    assert message.reset
    assert len(message.series["reward"].x) == 3


def logged(run: rlnb.Run, names: list[str]) -> None:
    """Log further metrics of a run."""
    writer = EventFileWriter(str(run.path / "logs"), filename_suffix=".further")
    for step in range(3):
        values = [Summary.Value(tag=name, simple_value=float(step)) for name in names]
        writer.add_event(Event(wall_time=run.started.time_s + step, step=step, summary=Summary(value=values)))
    writer.close()


def test_further_metrics_are_named_and_sent_once_the_page_shows_them(root: Path) -> None:
    run = echo().wait(60)
    page = Page(send=lambda _: None, watched={"key": {}})
    logged(run, ["Episode_Reward/reach", "Episode_Reward/alive"])
    (message,) = curves.news(page, "key", run)
    assert message.names == ["Episode_Reward/alive", "Episode_Reward/reach"]
    assert "reward" in message.series
    assert not {*message.names} & {*message.series}
    assert list(curves.news(page, "key", run)) == [], "they are named once"
    page.metrics = ("Episode_Reward/reach", "nope")
    (message,) = curves.news(page, "key", run)
    assert (message.names, list(message.series)) == (None, ["Episode_Reward/reach"])
    assert message.series["Episode_Reward/reach"].y == [0.0, 1.0, 2.0]
