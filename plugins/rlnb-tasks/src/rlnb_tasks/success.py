"""What success means for tasks that do not say it themselves. Runs in the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def survived(env: Any) -> torch.Tensor:
    """Return which envs reached the time limit without being terminated. Shape (num_envs,), bool.

    Ask as an episode ends: both flags belong to the step just taken, and the next step overwrites them.

    Args:
        env: Isaac Lab's own env (``gym.make(...).unwrapped``), single-agent, direct or manager-based.
    """
    return env.reset_time_outs & ~env.reset_terminated
