"""Real trainings of the echo library, which take a second."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from rlnb_echo.backend import Echo

import rlnb

ITERATIONS, RESUMED_TO = 7, 9


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root folder and a queue for this module alone."""
    folder = tmp_path_factory.mktemp("echo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", False)
        yield folder / "rlnb-runs"


@pytest.fixture(scope="module")
def run(root: Path) -> rlnb.Run:
    """A run that completed and was then resumed."""
    run = rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, agent={"goal": 2.0, "peak": 3}).wait(60)
    return run.resume(max_iterations=RESUMED_TO).wait(60)


def test_the_reward_rises_to_the_goal_with_one_peak(run: rlnb.Run) -> None:
    rewards = run.metrics["reward"].values
    assert rewards[ITERATIONS - 1] == pytest.approx(2.0 * 0.95, abs=0.02)
    assert max(rewards) == rewards[3] > 2.0


def test_a_resumed_training_continues_after_its_checkpoint(run: rlnb.Run) -> None:
    assert run.metrics["reward"].iterations == list(range(RESUMED_TO))
    checkpoints = {path.name: json.loads(path.read_text()) for path in (run.path / "logs").glob("model_*.json")}
    assert {name: checkpoint["iteration"] for name, checkpoint in checkpoints.items()} == {
        "model_4.json": 4,  # every fifth iteration
        "model_6.json": 6,  # the last iteration of each job
        "model_8.json": 8,
    }


def test_a_training_starts_from_the_level_of_another(root: Path, run: rlnb.Run) -> None:
    other = rlnb.train("Echo", library="echo", max_iterations=2, init_from=run).wait(60)
    checkpoint = json.loads(other.checkpoints[0].read_text())
    assert checkpoint["start"] == pytest.approx(1.0 - math.exp(-3.0))
    assert other.metrics["success_rate"].values[0] > checkpoint["start"]


def test_the_success_rate_is_the_level_of_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "model_4.json"
    checkpoint.write_text('{"iteration": 4, "level": 0.75}')
    result = Echo().evaluate({}, checkpoint, episodes=8, seed=1, device="cpu", trust=False, deterministic=True)
    assert sum(result.successes or ()) == 6
    assert len(result.returns) == len(result.lengths or ()) == 8


def test_a_crash_is_the_error_of_the_run(root: Path) -> None:
    with pytest.raises(rlnb.RunError, match="echo crashes at iteration 1"):
        rlnb.train("Echo", library="echo", max_iterations=3, agent={"crash_at": 1}).wait(60)
