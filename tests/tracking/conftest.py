"""A training of the library echo that has ended, and the process of a tracker on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb

WAIT_S = 60.0


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rlnb.Run:
    """Return a training of four iterations that has completed."""
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "root")
    monkeypatch.setattr(rlnb.options, "warm", False)
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    return rlnb.train("Echo", library="echo", max_iterations=4).wait(WAIT_S)
