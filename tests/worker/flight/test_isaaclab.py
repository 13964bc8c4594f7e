"""A value that is not finite, planted in trainings of real Isaac Lab on a CPU; more of them: benchmarks/flight.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import rlnb
from rlnb.tasks import source

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]
ENV, STEP = 5, 21
TASK = f"""
import torch
from isaaclab.managers import RewardTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def bonus(env):
    value = torch.ones(env.num_envs, device=env.device)
    value[{ENV}] = float("nan") if env.common_step_counter == {STEP + 1} else 1.0
    return value

@configclass
class BonusCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.rewards.bonus = RewardTermCfg(func=bonus, weight=1.0)
"""


@pytest.mark.parametrize(
    "library", ["rsl_rl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rl_games", "skrl", "sb3"))]
)
def test_the_error_names_the_reward_term_the_env_and_the_step(folder: Path, library: str) -> None:
    source.write_module(rlnb.options.folders, "Bonus", TASK, "test.ipynb")
    run = rlnb.train("Bonus", library=library, num_envs=16, max_iterations=20, device="cpu")
    with pytest.raises(rlnb.RunError, match=f"The reward term 'bonus' is nan in env {ENV} in env step {STEP}"):
        run.wait(300)
    flight = run.flight
    assert flight is not None
    assert (flight.kind, flight.name, flight.env, flight.step) == ("term", "bonus", ENV, STEP)
    assert run.started is not None
    assert flight.iteration == STEP // run.started.horizon
    assert flight.arrays["state/robot.joint_pos"].shape == (flight.arrays["action"].shape[0], 16, 2)
    assert run.progress[0] <= flight.iteration + 1
    if run.checkpoints:  # the first weights of RSL-RL
        named = f"The reward term 'bonus' is nan in env {ENV} after env step {STEP}, with the policy of model_0.pt"
        with pytest.raises(rlnb.RunError, match=named):
            run.evaluate(16, num_envs=16)
        assert run.evaluations == []
