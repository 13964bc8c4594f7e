"""What is said about the iteration that a training continues from."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rlnb
from rlnb.records.options import TrainOptions
from rlnb.run.continuation import iterations_of, say_where


def test_the_iteration_is_said_and_a_loss_of_more_than_a_checkpoint_interval(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=15).wait(60)
    assert [*iterations_of(run).values()] == [4, 9, 14]
    rest = TrainOptions(checkpoint="logs/model_9.json", max_iterations=20)
    with caplog.at_level(logging.INFO):
        say_where(run, rest, 12)
        assert "continues from logs/model_9.json, at iteration 10 of 20." in caplog.text
        assert "trained again" not in caplog.text
        say_where(run, rest, 16)
    assert "had finished 16 iterations. 6 of them are trained again." in caplog.text
    caplog.clear()
    say_where(run, TrainOptions(checkpoint="logs/gone.json", max_iterations=20), 16)
    assert not caplog.messages
