"""Checkpoints that are removed while a run trains, and those that are kept."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.records.layout import JobDir
from rlnb.records.record import RunRecord
from rlnb.worker.jobs import checkpoints as module
from rlnb.worker.jobs.checkpoints import retention, tidy_checkpoints


@pytest.fixture(scope="module")
def run(echo_root: Path) -> rlnb.Run:
    """A run with checkpoints of iterations 4, 9, 14 and 19, whose reward was highest at iteration 9."""
    return rlnb.train("Echo", library="echo", max_iterations=20, agent={"peak": 9}).wait(60)


@pytest.fixture
def checkpoints(run: rlnb.Run) -> list[Path]:
    """The checkpoints, written again for each test."""
    paths = [run.path / "logs" / f"model_{number}.json" for number in (4, 9, 14, 19)]
    for path in paths:
        path.write_text("{}")
    return paths


def names(run: rlnb.Run) -> list[str]:
    return [path.name for path in run.checkpoints]


def test_the_newest_and_the_best_are_kept(run: rlnb.Run, checkpoints: list[Path]) -> None:
    tidy_checkpoints(RunRecord(run.path), keep=1)
    assert names(run) == ["model_9.json", "model_19.json"]


def test_spare_checkpoints_are_gone_at_the_end_of_the_training(run: rlnb.Run, checkpoints: list[Path]) -> None:
    with retention(run.jobs[0].folder, keep=2):
        assert len(names(run)) == 4, "none is removed at the beginning"
    assert names(run) == ["model_9.json", "model_14.json", "model_19.json"]


def test_spare_checkpoints_are_removed_regularly_while_it_trains(
    run: rlnb.Run, checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied = threading.Event()
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    monkeypatch.setattr(module, "tidy_checkpoints", lambda *_: tidied.set())
    with retention(run.jobs[0].folder, keep=1):
        assert tidied.wait(10.0)


def test_none_is_removed_before_the_training_has_started(
    run: rlnb.Run, checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training may go on from one that is spare, and may fail before it has read it."""
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    with retention(JobDir(run.path / "jobs" / "9-train"), keep=1):
        time.sleep(0.1)
        assert len(names(run)) == 4
    assert len(names(run)) == 4


def test_without_a_limit_all_are_kept(run: rlnb.Run, checkpoints: list[Path]) -> None:
    with retention(run.jobs[0].folder, keep=None):
        pass
    assert len(names(run)) == 4


def test_a_checkpoint_that_cannot_be_removed_does_not_end_the_training(
    run: rlnb.Run, checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("Read-only file system")

    monkeypatch.setattr(os, "unlink", refuse)
    tidy_checkpoints(RunRecord(run.path), keep=1)
    assert "were not removed: Read-only file system" in caplog.text


def test_companions_are_removed_with_their_checkpoints(
    run: rlnb.Run, checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(RunRecord, "library_spec", library)
    buffers = [path.with_suffix(".buffer.npz") for path in checkpoints]
    for path in buffers:
        np.savez(path, actions=0.0)
    tidy_checkpoints(RunRecord(run.path), keep=1)
    assert [path.name for path in buffers if path.exists()] == ["model_9.buffer.npz", "model_19.buffer.npz"]
