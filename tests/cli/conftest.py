"""Commands in this process, and echo runs for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import rlnb
from rlnb.cli import app
from rlnb.settings import options
from rlnb.simulation.pool import pool
from rlnb.spec import ENDED

ITERATIONS = 5
TIMEOUT_S = 60.0


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """A function that runs a command in this process, with its runs below ``tmp_path``."""
    monkeypatch.setattr(options, "root", tmp_path)
    monkeypatch.setattr(pool, "keeps", True)  # `train` changes it
    monkeypatch.delenv("RLNB_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / ".queue"))  # do not queue behind other trainings of this machine
    runner = CliRunner()
    return lambda *argv: runner.invoke(app.app, [str(argument) for argument in argv])


@pytest.fixture
def start(invoke: Callable[..., Result]) -> Callable[..., str]:
    """A function that starts an echo training, with further options, and returns its id at once."""

    def train(*argv: str) -> str:
        result = invoke("train", "Echo", "--library", "echo", "--max-iterations", ITERATIONS, "--detach", *argv)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    return train


@pytest.fixture
def ended() -> Callable[[str], str]:
    """A function that waits for the end of a run, by its id, and returns its state."""

    def wait(id: str) -> str:
        deadline = time.monotonic() + TIMEOUT_S
        run = rlnb.get_run(id)
        while run.state not in ENDED:
            assert time.monotonic() < deadline, run
            time.sleep(0.1)
        return run.state

    return wait
