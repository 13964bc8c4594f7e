"""The teacher of a distillation: the policy of the input ``teacher``, which any library may have trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from rsl_rl.runners import DistillationRunner

from rlnb.backend import Policy, TrainContext

PARTS = {"student": True, "optimizer": True, "iteration": True}
"""What a resumed distillation loads. Its teacher is not in the checkpoint, but among the inputs of the run."""


class _Teacher(torch.nn.Module):
    """A policy in place of RSL-RL's teacher network."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._policy = policy

    def forward(self, obs: Any) -> torch.Tensor:
        """Return the policy's actions, shape (num_envs, action_dim), for a TensorDict of observations."""
        actions: torch.Tensor = self._policy(obs.to_dict())
        return actions

    def reset(self, *_: object, **__: object) -> None:
        """Do nothing. RSL-RL also calls this while it learns from stored steps, in which the teacher does not act."""

    def get_hidden_state(self) -> None:
        """Return no state, for the same reason."""


def attach(runner: DistillationRunner, env: Any, ctx: TrainContext) -> None:
    """Let a distillation learn from the run's teacher. Checkpoints then hold the student only.

    Args:
        runner: RSL-RL's runner, which has reset the env.
        env: Env that the backend got.
        ctx: Context of the training, which has the teacher.
    """
    algorithm, groups = runner.alg, runner.cfg["obs_groups"]["teacher"]
    # A single group is what the teacher knows as "policy". Several groups have their names in its agent config.
    policy = ctx.policy("teacher", env, {"policy": groups[0]} if len(groups) == 1 else None)
    step, save, load = algorithm.process_env_step, algorithm.save, algorithm.load

    def process_env_step(obs: Any, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, torch.Tensor]) -> None:
        step(obs, rewards, dones, extras)
        policy.reset(dones.bool())

    def save_student() -> dict[str, Any]:
        return {name: part for name, part in save().items() if name != "teacher_state_dict"}

    def load_student(parts: dict[str, Any], choice: Mapping[str, bool] | None, strict: bool) -> bool:
        return load(parts, dict(choice or PARTS), strict)

    algorithm.teacher, algorithm.teacher_loaded = _Teacher(policy), True
    algorithm.process_env_step, algorithm.save, algorithm.load = process_env_step, save_student, load_student
