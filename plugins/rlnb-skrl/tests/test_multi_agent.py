"""Multi-agent training with real Isaac Lab, in addition to the conformance tests of every library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import rlnb

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

WAIT_S = 600.0
NUM_ENVS = 128
ITERATIONS = 40
TIMES_BETTER = 3.0
"""Ratio of the final return to that of the first iterations. 256 envs reach 6 after 40 iterations, 50 after 100."""


def test_mappo_learns_and_the_common_loss_is_the_mean_over_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "rlnb-runs")
    monkeypatch.setattr(rlnb.options, "warm", False)
    run = rlnb.train(
        "Isaac-Pendulum-MARL-Direct",
        library="skrl_mappo",
        num_envs=NUM_ENVS,
        max_iterations=ITERATIONS,
        device="cpu",
    ).wait(WAIT_S)
    reward = run.metrics["reward"].values
    assert np.mean(reward[-5:]) > TIMES_BETTER * np.mean(reward[:5])
    cart, pendulum = (run.metrics[f"Loss / Value loss ({agent})"].values for agent in ("cart", "pendulum"))
    assert cart != pendulum
    assert run.metrics["value_loss"].values == pytest.approx(np.mean([cart, pendulum], axis=0), rel=1e-5)
