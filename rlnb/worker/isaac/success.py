"""The success of the episodes of an evaluation, and the source that it is taken from.

The sources, in this order, are the task's own success function, the termination term ``success`` of a manager-based
task, and the rate that the env itself logs.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.errors import NotFiniteError, RlnbError
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.means import Means

if TYPE_CHECKING:
    import torch

LOGGED = "Metrics/success_rate"
"""Name of the mean success of the envs that are reset, which Isaac Lab's envs log in ``extras["log"]``."""
TERM = "success"
TERMINATION = f"terminations.{TERM}"
_ROUNDING = 1e-3
"""Tolerance for a whole number of successes that was computed from a rate in single precision."""


def source_in_config(registered: Registered, env_cfg: Any) -> str:
    """Return the source of success that a task's config names; empty if only the env's own rate is left.

    Args:
        registered: The task's registration.
        env_cfg: Config of the env.
    """
    terminations = getattr(env_cfg, "terminations", None)
    return registered.success_source or (TERMINATION if getattr(terminations, TERM, None) is not None else "")


class Successes:
    """The success of the episodes that count, in the order in which they end."""

    def __init__(self, env: Any, registered: Registered) -> None:
        """Choose the source.

        Args:
            env: The task's own env.
            registered: The task's registration.
        """
        self._env = env
        self._function = registered.success or _termination(env)
        self._source = registered.success_source or (TERMINATION if self._function else "")
        self._values: list[float] = []
        self._gaps = False

    @property
    def source(self) -> str:
        """Source of the success: a function, ``terminations.success`` or ``Metrics/success_rate``; empty if none."""
        return self._source

    @property
    def values(self) -> tuple[float, ...] | None:
        """Success of each episode, 0 to 1; None if the source does not tell it for every episode."""
        return None if self._gaps or not self._source else tuple(self._values)

    @contextlib.contextmanager
    def of(self, env_ids: torch.Tensor, counted: torch.Tensor) -> Iterator[None]:
        """Note the success of episodes that end, before and during the reset of their envs.

        Args:
            env_ids: Ids of the envs, shape (n,).
            counted: Whether the episode of each of these envs counts, shape (n,), bool.
        """
        if self._function is not None:
            values = self._function(self._env)[env_ids][counted].float().tolist()
            for env_id, value in zip(env_ids[counted].tolist(), values, strict=True):
                if not 0.0 <= value <= 1.0:
                    kind = RlnbError if math.isfinite(value) else NotFiniteError
                    what = f"The success of env {env_id}, from {self._source}, is {value}, which is not from 0 to 1."
                    raise kind(f"{what} Return a bool, or the share of the goals that were reached.")
            self._values += values
            yield
            return
        means = Means()
        with means.noted():
            yield
        # Taken out of the log, so that a later reset that logs no rate does not find this one.
        rate = self._env.extras.get("log", {}).pop(LOGGED, None)
        if rate is not None:
            self._source = LOGGED
        shares = None if rate is None else _shares(float(rate), means.values_of(rate), counted)
        self._gaps |= shares is None and bool(counted.any())
        self._values += shares or ()


def _termination(env: Any) -> Callable[[Any], torch.Tensor] | None:
    manager = getattr(env, "termination_manager", None)
    if manager is None or TERM not in manager.active_terms:
        return None
    return lambda env: env.termination_manager.get_term(TERM)


def _shares(rate: float, values: torch.Tensor | None, counted: torch.Tensor) -> Sequence[float] | None:
    """Return the success of the episodes that count, 0 to 1 each; None if the rate does not tell it.

    Without the values behind the rate, it can still be a number of successes among the envs that are reset. Then each
    episode gets the rate itself. That is exact in sum if the episodes of all these envs count.

    Args:
        rate: The logged rate.
        values: The values that the rate is the mean of; None if they are not known.
        counted: Whether the episode of each env that is reset counts, shape (n,), bool.
    """
    if values is not None and values.numel() == counted.numel():
        shares: list[float] = values.reshape(-1)[counted].float().tolist()
        return shares if all(0.0 <= share <= 1.0 for share in shares) else None
    successes = rate * counted.numel()
    if not 0.0 <= rate <= 1.0 or abs(successes - round(successes)) > _ROUNDING:
        return None
    return [rate] * int(counted.sum())
