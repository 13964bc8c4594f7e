"""Success of stock tasks that do not define it themselves. Runs in the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def survived(env: Any) -> torch.Tensor:
    """Return which envs reached the time limit without being terminated. Shape (num_envs,), bool.

    Call it as an episode ends: both flags belong to the step just taken, and the next step overwrites them.

    Args:
        env: Isaac Lab's own env (``gym.make(...).unwrapped``), single-agent, direct or manager-based.
    """
    return env.reset_time_outs & ~env.reset_terminated


def balanced(env: Any) -> torch.Tensor:
    """Return which envs of the double pendulum reached the time limit upright. Shape (num_envs,), bool.

    The task itself logs this success: both links upright without a break for the last second. The env counts those
    steps in a private attribute. One agent's flags stand for all, since the agents share them.

    Args:
        env: Isaac Lab's own env of ``Isaac-Pendulum-MARL-Direct``.
    """
    agent = env.possible_agents[0]
    upright = env._consecutive_upright_steps >= env._success_required_steps
    return env.time_out_dict[agent] & ~env.terminated_dict[agent] & upright
