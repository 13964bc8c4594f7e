"""The success of the episodes that end in an env, and the source that it is taken from.

The sources, in this order, are the task's own success function, the termination term ``success`` of a manager-based
task, and the rate that the env itself logs.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rlnb.errors import NotFiniteError, RlnbError
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.task_log import LOG, with_log

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


# -- values behind a mean --------------------------------------------------------------------------------------------


T = TypeVar("T")


class Means:
    """Means over whole tensors, each with the values that it was taken of.

    Envs log only the mean of their success. The mean's values have the success of each env.
    """

    def __init__(self) -> None:
        self._taken: list[tuple[object, torch.Tensor]] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note every mean that is taken within the context, and every Python number that is made of one."""
        import torch

        _watch_methods()
        function = torch.mean  # replaced for the time of the context only, since torch.jit.script knows it by identity
        _noting.append(self)
        torch.mean = _watched_mean(function)  # type: ignore[assignment]
        try:
            yield
        finally:
            torch.mean = function
            _noting.remove(self)

    def take(self, mean: torch.Tensor, values: torch.Tensor) -> None:
        """Note the values of a mean. They are copied, since an env may clear its own right after."""
        self._taken.append((mean, values.detach().clone()))

    def convert(self, number: object, mean: torch.Tensor) -> None:
        """Note a number that was made of a mean."""
        if (values := self.values_of(mean)) is not None:
            self._taken.append((number, values))

    def values_of(self, mean: object) -> torch.Tensor | None:
        """Return the values of a mean, which is compared by identity; None if it is not one of these."""
        return next((values for taken, values in reversed(self._taken) if taken is mean), None)


_noting: list[Means] = []
"""Those whose context is open."""


@functools.cache
def _watch_methods() -> None:
    """Let tensors tell each open context of their means and numbers, from now on.

    The methods stay replaced, because each change of a class makes Python look up all of its attributes anew. With a
    change in every reset, the success rate took 2 % of the time of a training of 512 cart-poles. With a
    ``TorchFunctionMode``, which sees every call and attribute of a tensor, it took 4 %.
    """
    import torch

    tensor: Any = torch.Tensor
    item, number = tensor.item, tensor.__float__
    tensor.mean = _watched_mean(tensor.mean)
    tensor.item = functools.wraps(item)(lambda self: _converted(item(self), self))
    tensor.__float__ = functools.wraps(number)(lambda self: _converted(number(self), self))


def _watched_mean(mean: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(mean)
    def watched(*args: Any, **options: Any) -> torch.Tensor:
        result = mean(*args, **options)
        if _noting and args and result.dim() == 0:
            for means in _noting:
                means.take(result, args[0])
        return result

    return watched


def _converted(value: T, tensor: torch.Tensor) -> T:
    for means in _noting:
        means.convert(value, tensor)
    return value


# -- the success rate of a training ----------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

WINDOW = 100
"""Number of episodes of the mean. RL libraries take as many for their reward and their episode length."""


class RecentSuccess:
    """Puts the success rate of the last whole episodes into the log of an env, once in each iteration.

    The source of the success is that of an evaluation, so that the two can be compared. Libraries start the envs of a
    training at random times in their episodes. Such an episode is short, and says little about the policy, so it does
    not count. Before the first whole episode has ended, there is no rate.

    Args:
        env: The env as :func:`gymnasium.make` returns it, not reset yet.
        registered: The task's registration.
        ends_iteration: ``function(steps)`` returns whether an iteration ends with a number of env steps; None before
            the training has started, so that the step does not count.
    """

    def __init__(
        self,
        env: Any,
        registered: Registered,
        ends_iteration: Callable[[int], bool | None],
    ) -> None:
        import torch

        self._env = isaaclab.task_env(env)
        self._ends_iteration = ends_iteration
        self._successes = Successes(self._env, registered, checked=False)
        self._recent: collections.deque[float] = collections.deque(maxlen=WINDOW)
        self._steps = 0
        self._in_step = self._is_off = self._has_looked = False
        self._reset = True
        """Whether envs were reset since the last step began."""
        size, device = self._env.num_envs, self._env.device
        self._is_new = torch.ones(size, dtype=torch.bool, device=device)
        """Whether each env was reset since the last step began. Shape (num_envs,)."""
        self._is_whole = torch.zeros(size, dtype=torch.bool, device=device)
        """Whether the episode of each env has begun at its begin. Shape (num_envs,)."""
        self._ended = 0
        """Number of episodes that have ended."""
        self._any_whole = torch.zeros((), dtype=torch.bool, device=device)
        """Whether one of them was whole. It is read once only, since a GPU has to wait for that."""

    def attach(self) -> None:
        """Follow the resets and the steps of the env."""
        isaaclab.around_reset(self._env, self._resetting)
        step = self._env.step

        def followed(actions: Any) -> Any:
            self._begin_step()
            try:
                *outcome, extras = step(actions)
            finally:
                self._in_step = False
            ends = self._ends_iteration(self._steps + 1)
            self._steps += ends is not None
            return (*outcome, self._with_rate(extras, bool(ends)) if self._successes.source else extras)

        self._env.step = followed

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """Turn the rate off after a failure, such as one of the task's success function: it must not end a training."""
        try:
            yield
        except Exception as exc:
            self._is_off = True
            logger.warning("The training logs no success rate. %s: %s", type(exc).__name__, exc)

    def _begin_step(self) -> None:
        """Note which of the episodes that begin with this step do so at their begin."""
        if self._reset:
            at_begin = self._env.episode_length_buf == 0
            # Not in place: a library may step the env in inference mode, and later without it.
            self._is_whole = (self._is_whole & ~self._is_new) | (self._is_new & at_begin)
            self._is_new = self._is_new & False
            self._reset = False
        self._in_step = True

    @contextlib.contextmanager
    def _resetting(self, env_ids: Any) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self._is_off:
                yield
                return
            with self._harmless():
                ids = _ids(env_ids, self._is_new)
                counts = self._in_step and bool(self._successes.source)
                whole = self._is_whole[ids]
                stack.enter_context(self._successes.of(ids, whole if counts else None))
                if counts and not self._has_looked:
                    self._ended, self._any_whole = self._ended + len(ids), self._any_whole | whole.any()
                self._reset, self._is_new = True, self._is_new.index_fill(0, ids, True)
            yield

    def _with_rate(self, extras: Any, ends: bool) -> Any:
        """Return a step's extras with the success rate if an iteration ends, and without the env's own rate.

        Extras that are no mapping have no place for a rate, and stay as they are.
        """
        if not isinstance(extras, Mapping):
            return extras
        log = {name: value for name, value in extras.get(LOG, {}).items() if name != LOGGED}
        with self._harmless():
            if ends and not self._is_off and (rate := self._rate()) is not None:
                log[LOGGED] = rate
        return with_log(extras, log)

    def _rate(self) -> torch.Tensor | None:
        """Return the mean success of the last whole episodes, shape (), float32; None before the first has ended."""
        import torch

        self._recent.extend(self._successes.take())
        # Only the first episode of each env may begin late.
        if not self._has_looked and self._ended >= self._env.num_envs + WINDOW:
            self._has_looked = True
            if not bool(self._any_whole):
                logger.warning(
                    "No success rate is logged so far: none of %d episodes began at step 0. The task sets "
                    "episode_length_buf at each reset. With num_envs=1, some tasks do so whenever all envs are reset. "
                    "Use more envs, or evaluate the run.",
                    self._ended,
                )
        return torch.tensor(sum(self._recent) / len(self._recent)) if self._recent else None


def _ids(env_ids: Any, like: torch.Tensor) -> torch.Tensor:
    """Return the ids of the envs that are reset, shape (n,), from whatever Isaac Lab passes to a reset."""
    import torch

    if env_ids is None:
        env_ids = slice(None)
    if isinstance(env_ids, slice):
        return torch.arange(len(like), device=like.device)[env_ids]
    return torch.as_tensor(env_ids, dtype=torch.long, device=like.device)
