"""Multi-agent tasks on real Isaac Lab: their cards, the libraries that train them, and their episodes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import rlnb
from rlnb.tasks import source

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

TASK = "Isaac-Pendulum-MARL-Direct"
JOINED, SEVERAL = "rsl_rl", "skrl_ippo"
"""A library that joins all agents into one, and a library that trains each agent on its own."""
NUM_ENVS = 8
WAIT_S = 600.0
LAST_STEP = 29
"""Length, in steps, of a 0.5 s episode at 60 Hz. Isaac Lab's time-out ends it after 29 steps, not 30."""

# One agent ends long before the other; the env is reset once both have ended. The task defines no agent config, so the
# libraries' defaults are used.
LONE_END = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.pendulum import PendulumMARLEnv, PendulumMARLEnvCfg

@configclass
class LoneEndCfg(PendulumMARLEnvCfg):
    episode_length_s = 0.5

class LoneEndEnv(PendulumMARLEnv):
    def _get_dones(self):
        terminated, time_outs = super()._get_dones()
        never = terminated["cart"] & False
        return {"cart": self.episode_length_buf >= 5, "pendulum": never}, time_outs

    def _get_rewards(self):
        one = super()._get_rewards()["cart"] * 0 + 1
        return {"cart": one, "pendulum": 2 * one}

def success(env):
    return env.time_out_dict["pendulum"]
"""


def test_a_card_lists_the_spaces_of_each_agent_and_the_libraries_that_can_train_them() -> None:
    card = rlnb.task(TASK).card()
    assert card.workflow == "multi-agent"
    assert card.fields["possible_agents"].value == ["cart", "pendulum"]
    assert card.fields["observation_spaces.cart"].value == 4
    assert card.fields["action_spaces.pendulum"].value == 1
    assert {JOINED, SEVERAL} <= set(card.agents)


def test_a_multi_agent_library_refuses_a_single_agent_task_before_anything_starts() -> None:
    with pytest.raises(rlnb.CheckError, match=f"1 problem.*\n.*{SEVERAL} trains tasks with several agents") as refused:
        rlnb.train("Isaac-Cartpole-Direct", library=SEVERAL, device="cpu")
    assert JOINED in str(refused.value)
    assert not list(rlnb.runs())


@pytest.mark.parametrize("library", [JOINED, SEVERAL])
def test_an_episode_lasts_until_all_agents_end_and_its_return_is_the_sum_over_agents(library: str) -> None:
    source.write_module(rlnb.options.folders, "LoneEnd", LONE_END, "test.ipynb")
    run = rlnb.train("LoneEnd", library=library, num_envs=NUM_ENVS, max_iterations=2, device="cpu").wait(WAIT_S)
    evaluation = run.evaluate(episodes=NUM_ENVS, num_envs=NUM_ENVS, record=NUM_ENVS)
    assert evaluation.lengths == (LAST_STEP,) * NUM_ENVS
    assert evaluation.returns == pytest.approx([3.0 * LAST_STEP] * NUM_ENVS)
    assert evaluation.timeouts == (True,) * NUM_ENVS
    assert evaluation.success_rate == 1.0
    assert evaluation.rollout is not None
    shapes = {name: part.shape[1] for name, part in np.load(evaluation.rollout).items()}
    joined = {"obs.policy": 4 + 3, "actions": 1 + 1}
    several = {"obs.cart": 4, "obs.pendulum": 3, "actions.cart": 1, "actions.pendulum": 1}
    assert shapes == (joined if library == JOINED else several)
    separate = {f"{agent}/{name}" for agent in ("cart", "pendulum") for name in ("torchscript", "onnx")}
    assert set(run.export()) == ({"torchscript", "onnx"} if library == JOINED else separate)
