"""Fixtures for trainings of the echo library that Trackio follows, isolated from the user's own Trackio settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb

ITERATIONS = 12
ITERATION_S = 0.3
WAIT_S = 60.0


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary root folder, without the user's Trackio settings. Waits for all trackers at the end."""
    for name in [name for name in os.environ if name.startswith(("TRACKIO_", "HF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "rlnb-runs")
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield tmp_path / "rlnb-runs"
    for run in rlnb.runs():
        _wait_for_agent(run)


@pytest.fixture
def train() -> Callable[..., rlnb.Run]:
    """Return a function that starts a training with tags."""

    def start(*tags: str, **arguments: Any) -> rlnb.Run:
        agent = {"iteration_s": ITERATION_S, **arguments.pop("agent", {})}
        return rlnb.train("Echo", library="echo", tags=tags, agent=agent, **{"max_iterations": ITERATIONS, **arguments})

    return start


@pytest.fixture
def wait_for_agent() -> Callable[[rlnb.Run], None]:
    """Return a function that waits until the newest job's agent, and so all its child processes, have ended."""
    return _wait_for_agent


def _wait_for_agent(run: rlnb.Run) -> None:
    """Wait until the newest job's agent, and so all its child processes, have ended."""
    handle, deadline = run.jobs[-1].handle, time.monotonic() + WAIT_S
    assert handle is not None
    while rlnb.LocalLauncher().alive(handle, run.jobs[-1].folder.path):
        assert time.monotonic() < deadline, "the agent of the job does not end"
        time.sleep(0.05)
