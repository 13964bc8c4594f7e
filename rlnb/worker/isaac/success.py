"""The success of the episodes that end in an env, and the source that it is taken from.

The sources, in this order, are the task's own success function, the termination term ``success`` of a manager-based
task, and the rate that the env itself logs.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """Episodes that ended in the same step. Their numbers stay on the device until they are read."""

    counted: torch.Tensor
    """Whether each episode counts, shape (n,), bool."""
    values: torch.Tensor | None
    """Success of each episode, shape (n,), or the values that the rate is the mean of; None if they are not known."""
    rate: Any = None
    """The rate that the env has logged; None for a function, and if it has logged none."""
    told: bool = True
    """Whether there is a function or a rate."""

    def successes(self) -> Sequence[float] | None:
        """Return the success of each episode that counts; None if the source does not tell it."""
        if not self.told:
            return None if bool(self.counted.any()) else ()
        if self.rate is not None:
            shares = _shares(float(self.rate), self.values, self.counted)
            return () if shares is None and not bool(self.counted.any()) else shares
        assert self.values is not None
        successes: list[float] = self.values[self.counted].tolist()
        return successes

    def rates(self) -> Sequence[float]:
        """Return the success of each episode that counts, or the rate of its step if that is all that is known."""
        successes = self.successes()
        if successes is None:
            count = int(self.counted.sum())
            successes = [float(self.rate)] * count if self.rate is not None else []
        return [success for success in successes if math.isfinite(success)]


class Successes:
    """The success of the episodes that count, in the order in which they end."""

    def __init__(self, env: Any, registered: Registered, *, checked: bool = True) -> None:
        """Choose the source.

        Args:
            env: The task's own env.
            registered: The task's registration.
            checked: Whether a function's success that is not from 0 to 1 is an error, as soon as the episode ends.
        """
        self._env, self._checked = env, checked
        self._function = registered.success or _termination(env)
        self._source = registered.success_source or (TERMINATION if self._function else "")
        self._ended: list[_Ended] = []
        self._seen: Any = None
        """The rate that was read last, as it is in the log of the env."""

    @property
    def source(self) -> str:
        """Source of the success: a function, ``terminations.success`` or ``Metrics/success_rate``; empty if none."""
        return self._source

    @property
    def values(self) -> tuple[float, ...] | None:
        """Success of each episode, 0 to 1; None if the source does not tell it for every episode."""
        parts = [ended.successes() for ended in self._ended]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) or not self._source else tuple(itertools.chain(*known))

    def take(self) -> list[float]:
        """Return the success of the episodes since the last call, or the rate of the step in which each has ended."""
        ended, self._ended = self._ended, []
        return [success for one in ended for success in one.rates()]

    @contextlib.contextmanager
    def of(self, env_ids: torch.Tensor, counted: torch.Tensor | None) -> Iterator[None]:
        """Note the success of episodes that end, before and during the reset of their envs.

        Args:
            env_ids: Ids of the envs, shape (n,).
            counted: Whether the episode of each of these envs counts, shape (n,), bool; None if no episode ends, so
                that only the source is looked for.
        """
        if self._function is not None:
            if counted is not None:
                values = self._function(self._env)[env_ids].float()
                if self._checked:
                    self._check(env_ids[counted].tolist(), values[counted].tolist())
                self._ended.append(_Ended(counted=counted, values=values))
            yield
            return
        means = Means()
        with contextlib.nullcontext() if counted is None else means.noted():
            yield
        rate = self._rate()
        rate = None if rate is self._seen else rate
        if rate is not None:
            self._source = LOGGED
            self._mark(rate)
        if counted is not None:
            told = rate is not None
            self._ended.append(_Ended(counted=counted, values=means.values_of(rate), rate=rate, told=told))

    def _check(self, env_ids: Sequence[int], values: Sequence[float]) -> None:
        for env_id, value in zip(env_ids, values, strict=True):
            if not 0.0 <= value <= 1.0:
                kind = RlnbError if math.isfinite(value) else NotFiniteError
                what = f"The success of env {env_id}, from {self._source}, is {value}, which is not from 0 to 1."
                raise kind(f"{what} Return a bool, or the share of the goals that were reached.")

    def _rate(self) -> Any:
        log = self._env.extras.get("log")
        return log.get(LOGGED) if isinstance(log, Mapping) else None

    def _mark(self, rate: Any) -> None:
        """Replace the logged rate by an equal one, so that a later reset that logs no rate does not find this one."""
        with contextlib.suppress(TypeError, ValueError):  # not a number
            self._seen = rate.clone() if hasattr(rate, "clone") else float(rate) + 0.0
            self._env.extras["log"][LOGGED] = self._seen


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
