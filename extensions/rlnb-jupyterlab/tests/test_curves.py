"""A page gets each point of a curve once."""

from __future__ import annotations

from pathlib import Path

from asking import echo
from rlnb_jupyterlab import curves
from rlnb_jupyterlab.pages import Page


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
