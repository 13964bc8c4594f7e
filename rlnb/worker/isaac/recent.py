"""The success rate of a training: the mean over the last episodes that were played from their begin to their end."""

from __future__ import annotations

import collections
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.success import LOGGED, Successes
from rlnb.worker.isaac.task_log import LOG, with_log

if TYPE_CHECKING:
    import torch

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
