"""RSL-RL's distillation with the policy of another library in place of its teacher network, without a simulator."""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tensordict import TensorDict

pytest.importorskip("rsl_rl")

from rlnb_rsl_rl import teacher
from rsl_rl.env import VecEnv
from rsl_rl.runners import DistillationRunner

NUM_ENVS, HORIZON = 4, 8
NETWORK = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
GAUSSIAN = {"class_name": "GaussianDistribution", "init_std": 0.1, "std_type": "scalar"}


class Points(VecEnv):  # type: ignore[misc]
    """An env with random observations, whose first env ends an episode in each step."""

    def __init__(self) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = NUM_ENVS, 1, 10
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": torch.randn(NUM_ENVS, 3), "state": torch.randn(NUM_ENVS, 2)}, [NUM_ENVS])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        dones = torch.tensor([1, 0, 0, 0])
        return self.get_observations(), torch.zeros(NUM_ENVS), dones, {}


class Sum:
    """A policy without weights, as another library may return it: the sum of the group that it knows as policy."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.calls: list[Any] = []
        self.dones: list[torch.Tensor] = []

    def __call__(self, obs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        assert type(obs) is dict
        self.calls.append(obs)
        return obs[self.group].sum(dim=1, keepdim=True)

    def reset(self, dones: torch.Tensor) -> None:
        self.dones.append(dones)


def distillation(folder: Path, group: str = "policy") -> tuple[DistillationRunner, Sum, list[Any]]:
    """Return a runner with a teacher, the teacher, and the groups that were requested."""
    torch.manual_seed(0)
    config = {
        "class_name": "DistillationRunner",
        "num_steps_per_env": HORIZON,
        "save_interval": 100,
        "logger": "tensorboard",
        "obs_groups": {"student": ["policy"], "teacher": [group]},
        "student": {**NETWORK, "distribution_cfg": dict(GAUSSIAN)},
        "teacher": {**NETWORK, "distribution_cfg": dict(GAUSSIAN)},
        "algorithm": {
            "class_name": "Distillation",
            "num_learning_epochs": 2,
            "learning_rate": 1e-2,
            "gradient_length": 4,
        },
    }
    policy, groups = Sum(group), []

    def policy_of(name: str, env: Any, mapping: Mapping[str, str] | None) -> Sum:
        groups.append((name, mapping))
        return policy

    runner = DistillationRunner(Points(), config, log_dir=str(folder), device="cpu")
    teacher.attach(runner, None, types.SimpleNamespace(policy=policy_of))  # type: ignore[arg-type]
    return runner, policy, groups


def test_the_student_learns_the_actions_of_the_policy(tmp_path: Path) -> None:
    runner, policy, _ = distillation(tmp_path)
    runner.learn(60)
    obs = torch.randn(64, 3)
    with torch.inference_mode():
        actions = runner.get_inference_policy()(TensorDict({"policy": obs}, [64]))
    assert (actions - obs.sum(dim=1, keepdim=True)).abs().mean() < 0.3
    assert len(policy.calls) == len(policy.dones) == 60 * HORIZON, "it neither acts nor is reset while RSL-RL learns"
    assert all(dones.tolist() == [True, False, False, False] for dones in policy.dones)


def test_a_checkpoint_has_the_student_only_and_restores_it(tmp_path: Path) -> None:
    runner, _, _ = distillation(tmp_path)
    runner.learn(2)
    runner.save(str(tmp_path / "model.pt"))
    assert "teacher_state_dict" not in torch.load(tmp_path / "model.pt", weights_only=False)
    other, _, _ = distillation(tmp_path)
    other.load(str(tmp_path / "model.pt"))
    assert other.current_learning_iteration == runner.current_learning_iteration
    for one, another in zip(runner.alg.student.parameters(), other.alg.student.parameters(), strict=True):
        assert torch.equal(one, another)
    assert other.alg.optimizer.state_dict()["state"], "the optimiser is restored too"


@pytest.mark.parametrize("group", ["policy", "state"])
def test_the_teacher_reads_the_group_of_the_agent_config_as_policy(tmp_path: Path, group: str) -> None:
    assert distillation(tmp_path, group)[2] == [("teacher", {"policy": group})]
