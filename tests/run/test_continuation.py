"""What a person is told when a training goes on."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

import rlnb
from rlnb.cli.training import show_run
from rlnb.jobs.jobs import say_losses, say_where
from rlnb.records.options import TrainOptions
from rlnb.reports.sections import _summary

WAIT_S = 60.0
LOST = {"iteration": "restored: 4", "replay buffer": "NOT restored: it is not saved"}


@pytest.fixture(scope="module")
def trained(echo_root: Path) -> rlnb.Run:
    """A run with checkpoints of the iterations 4 and 9."""
    return rlnb.train("Echo", library="echo", max_iterations=10).wait(WAIT_S)


@pytest.fixture
def resumed(trained: rlnb.Run) -> rlnb.Run:
    """The run, as if its training had continued without a part of its state."""
    path = trained.jobs[0].folder.started
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "restored": LOST}))
    return rlnb.Run(trained.path)


def test_a_lost_part_of_the_state_is_told_once_per_wait(resumed: rlnb.Run, caplog: pytest.LogCaptureFixture) -> None:
    resumed.wait(WAIT_S)
    assert caplog.messages == [
        f"{resumed.id} was resumed without a part of its state. replay buffer: NOT restored: it is not saved"
    ]


def test_a_lost_part_is_shown(resumed: rlnb.Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert "replay buffer, resumed</td>" in resumed._repr_html_()
    show_run(resumed)
    assert "replay buffer, resumed" in capsys.readouterr().out
    assert ("replay buffer, resumed", LOST["replay buffer"]) in [*_summary(resumed)]


def test_nothing_is_told_before_the_training_has_started(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    assert say_losses(run)
    run.jobs[0].folder.started.unlink()
    assert not say_losses(rlnb.Run(run.path))
    assert not caplog.messages


def test_the_iterations_that_are_trained_again_are_told_if_they_are_many(
    trained: rlnb.Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rest = TrainOptions(checkpoint="logs/model_4.json", max_iterations=12)
    say_where(trained, rest, done=9)
    assert caplog.messages == [f"{trained.id} continues from logs/model_4.json, at iteration 5 of 12."]
    say_where(trained, rest, done=11)
    assert caplog.messages[-1] == f"{trained.id} had finished 11 iterations. 6 of them are trained again."
