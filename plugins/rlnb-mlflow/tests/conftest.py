"""Fixtures for trainings of the echo library that MLflow follows, isolated from the user's own MLflow settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.testing import trackers


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary root folder, without the user's MLflow settings. Waits for all trackers at the end."""
    with trackers.isolated_root(tmp_path, monkeypatch, ("MLFLOW_",)) as folder:
        yield folder


@pytest.fixture
def train() -> Callable[..., rlnb.Run]:
    """Return a function that starts a training with tags."""
    return trackers.train_echo


@pytest.fixture
def wait_for_agent() -> Callable[[rlnb.Run], None]:
    """Return a function that waits until the newest job's agent, and so all its child processes, have ended."""
    return trackers.wait_for_agent
