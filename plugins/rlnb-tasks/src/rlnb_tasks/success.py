"""The success function for stock tasks that log the rate of something else. It runs in the worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def reached(env: Any) -> torch.Tensor:
    """Return which envs brought the object to its goal at any time in their episode. Shape (num_envs,), bool.

    The reward term ``success`` of these tasks keeps this flag. The rate that the tasks log is another one: the mean
    over a bank of start states, with the outcomes of earlier episodes.

    Args:
        env: Isaac Lab's own env (``gym.make(...).unwrapped``) of a task in ``isaaclab_tasks.core.lift``.
    """
    flags: torch.Tensor = env.reward_manager.get_term_cfg("success").func.succeeded
    return flags.clone()
