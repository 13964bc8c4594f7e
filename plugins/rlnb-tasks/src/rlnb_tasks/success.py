"""Success functions for stock tasks that define none. They run in the worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def survived(env: Any) -> torch.Tensor:
    """Return which envs reached the time limit without being terminated. Shape (num_envs,), bool.

    Call this when an episode ends: both flags describe the last step, and the next step overwrites them.

    Args:
        env: Isaac Lab's own env (``gym.make(...).unwrapped``), single-agent, direct or manager-based.
    """
    return env.reset_time_outs & ~env.reset_terminated


def balanced(env: Any) -> torch.Tensor:
    """Return which envs of the double pendulum reached the time limit upright. Shape (num_envs,), bool.

    The task itself logs this success: both links were upright without interruption for the last second. The env counts
    these steps in a private attribute. The agents share their flags, so one agent's flags are enough.

    Args:
        env: Isaac Lab's own env of ``Isaac-Pendulum-MARL-Direct``.
    """
    agent = env.possible_agents[0]
    upright = env._consecutive_upright_steps >= env._success_required_steps
    return env.time_out_dict[agent] & ~env.terminated_dict[agent] & upright
