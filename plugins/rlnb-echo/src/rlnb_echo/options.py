"""The agent options of the echo library, with which tests make a training slow, fail, hang or vary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The behaviour of a training."""

    iteration_s: float = 0.0
    """Seconds per iteration."""
    crash_at: int | None = None
    """Iteration that raises an exception."""
    hang_at: int | None = None
    """Iteration that hangs for an hour."""
    noise_from: int | None = None
    """First iteration whose reward has unseeded noise."""
    peak: int | None = None
    """Iteration with a peak in the reward."""
    goal: float = 1.0
    """Reward at the end of the curve."""
    ignore_sigterm: bool = False
    """Whether the training ignores SIGTERM."""
    fork: bool = False
    """Whether the training leaves a detached child process behind."""

    @classmethod
    def of(cls, agent_cfg: Mapping[str, Any]) -> Options:
        """Return the options from an agent config; other values in it are ignored."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in agent_cfg.items() if name in names})


def defaults() -> dict[str, Any]:
    """Return the agent config of echo, the :attr:`rlnb.plugin.Library.default_agent`."""
    return dataclasses.asdict(Options())
