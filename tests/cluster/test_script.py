"""A training script of Isaac Lab 2.3 with its own Python, on a node of a real Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import LEAVE_S, processes, wait_until

import rlnb

SCRIPT = Path(__file__).parents[1] / "rig" / "isaaclab_2_3" / "train.py"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def started(python: str, iterations: int) -> rlnb.Run:
    argv = ["--task", "Isaac-Ant-v0", "--headless", "--num_envs", "16", "--max_iterations", str(iterations)]
    launcher = rlnb.slurm(nodes=1, walltime="00:10:00")
    run = rlnb.train(script=SCRIPT, args=[*argv, "agent.iteration_s=0.2"], python=python, launcher=launcher)
    wait_until(lambda: "reward" in run.metrics.names, 90)
    return run


def test_slurm_runs_a_script_of_isaac_lab_2_3_with_live_metrics(slurm: Any, clean: Path, isaaclab_2_3: str) -> None:
    run = started(isaaclab_2_3, 30)
    assert run.state == "running"
    assert run.wait(90).state == "completed"
    assert len(run.metrics["reward"]) == 30
    assert "Learning iteration 29/30" in run.logs()
    assert run.checkpoints.last.name == "model_29.pt"
    assert run.manifest.versions["isaaclab"] == "2.3.2"
    wait_until(lambda: not processes(run) and not slurm.jobs(), LEAVE_S)


def test_cancel_ends_a_script_of_isaac_lab_2_3_on_its_node(slurm: Any, clean: Path, isaaclab_2_3: str) -> None:
    run = started(isaaclab_2_3, 10_000)
    run.cancel()
    wait_until(lambda: run.state == "cancelled", 30)
    wait_until(lambda: not processes(run) and not slurm.jobs(), LEAVE_S)
