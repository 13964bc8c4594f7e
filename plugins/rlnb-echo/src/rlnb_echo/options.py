"""The agent options of the echo library. They serve tests: a training can be slow, fail, hang or differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Actions of a training beside its curve."""

    iteration_s: float = 0.0
    """Seconds that an iteration takes."""
    crash_at: int | None = None
    """Iteration that raises."""
    hang_at: int | None = None
    """Iteration that hangs for an hour."""
    noise_from: int | None = None
    """First iteration whose reward has noise without a seed."""
    peak: int | None = None
    """Iteration of high reward."""
    goal: float = 1.0
    """Reward that the curve rises to."""
    ignore_sigterm: bool = False
    """Whether SIGTERM does nothing."""
    fork: bool = False
    """Whether a detached grandchild is left behind."""

    @classmethod
    def of(cls, agent_cfg: Mapping[str, Any]) -> Options:
        """Return the options among the values of an agent config, which may hold others."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in agent_cfg.items() if name in names})
