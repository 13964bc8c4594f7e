"""Ends an evaluation at the first value that is not finite: an action, a state, a reward, or an observation."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import NotFiniteError
from rlnb.records import weights
from rlnb.records.find import run_of
from rlnb.worker.flight.snapshot import WIDEST, Kind, StateField, States, leaves, outcome_parts, place_of, terms
from rlnb.worker.isaac import isaaclab

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


OF_DISTRIBUTIONS = ("normal expects all elements of std", "found invalid values", "probability tensor contains")
"""Parts of torch's errors about the parameters of a distribution that are nan."""


def refuse_not_finite(checkpoint: Path) -> None:
    """Refuse a checkpoint with a weight that is nan or infinite, whatever library wrote it.

    Raises:
        NotFiniteError: There is such a weight. The message names it, and a checkpoint of the same run to use.
    """
    if fault := weights.fault_of(checkpoint):
        run = run_of(checkpoint.absolute())
        fix = run.checkpoints.other_fix(checkpoint) if run is not None else "Use another file."
        raise NotFiniteError(f"{checkpoint} is not finite: {fault}. {fix}")


class Guard:
    """Looks at all values of each step of an env in which a policy acts.

    One sum for each tensor is the whole cost of a step: it is finite only if all values are. Pictures may be infinite,
    as depths are where a ray hits nothing, but not nan.

    Args:
        env: The env.
        policy: What acts in it, for the error, such as ``"the policy of model_3.pt"``.
    """

    def __init__(self, env: Any, policy: str) -> None:
        self._env, self._policy, self._steps = isaaclab.task_env(env), policy, 0
        self._states: States | None = None
        try:
            self._states = States(self._env)
            self._states.read()
        except Exception as exc:  # an asset of a task's own
            logger.warning("The states of this env are not looked at. %s: %s", type(exc).__name__, exc)
            self._states = None

    def reset(self, observations: Any) -> None:
        """Look at the values after a reset.

        Raises:
            NotFiniteError: A value is nan or infinite.
        """
        self._look({"observation": observations}, "after the reset")

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Name the policy and the step in an error of torch about a distribution that is not finite.

        Raises:
            NotFiniteError: A library has sampled from a distribution whose parameters are nan.
        """
        try:
            yield
        except (ValueError, RuntimeError) as exc:
            if not any(sign in str(exc) for sign in OF_DISTRIBUTIONS):
                raise
            first = str(exc).partition("\n")[0]
            what = f"The distribution of the actions is not finite in env step {self._steps}, with {self._policy}"
            raise NotFiniteError(f"{what}: {first}. There is no result.") from exc

    def acted(self, actions: Any) -> None:
        """Look at the actions for the next step.

        Raises:
            NotFiniteError: An action is nan or infinite.
        """
        self._refuse_unless_finite({"action": actions}, (), f"in env step {self._steps}")
        self._steps += 1

    def stepped(self, observations: Any, reward: Any) -> None:
        """Look at the values after a step.

        Raises:
            NotFiniteError: A value is nan or infinite.
        """
        self._look({"reward": reward, "observation": observations}, f"after env step {max(0, self._steps - 1)}")

    def _look(self, values: Mapping[Kind, Any], when: str) -> None:
        states = () if self._states is None else zip(self._states.parts, self._states.read(), strict=True)
        self._refuse_unless_finite(values, states, when)

    def _refuse_unless_finite(
        self, values: Mapping[Kind, Any], states: Iterable[tuple[StateField, torch.Tensor]], when: str
    ) -> None:
        """Refuse values that are not finite, the cause before its effects: states, reward terms, rewards, observations.

        Args:
            values: Tensors by kind, or dicts of them.
            states: The states of the env.
            when: The moment, for the error.
        """
        import torch

        states = list(states)
        found = {kind: dict(self._tensors(value)) for kind, value in values.items()}
        every = [value for _, value in states] + [value for of_kind in found.values() for value in of_kind.values()]
        if not every:
            return
        # In float64, since a sum of large float32 may be infinite.
        if bool(torch.stack([value.sum(dtype=torch.float64).to(every[0].device) for value in every]).isfinite().all()):
            return
        rows = {kind: {name: _flat(value) for name, value in of_kind.items()} for kind, of_kind in found.items()}
        known = outcome_parts(self._env, {"term": terms(self._env), **rows} if "reward" in rows else rows)
        tensors = [value for _, value in states]
        tensors += [*terms(self._env).values()] if "reward" in rows else []
        tensors += [value for of_kind in found.values() for value in of_kind.values()]
        for part, value in zip([*(part for part, _ in states), *known], tensors, strict=True):
            is_picture = value.dim() > 2 or value.shape[-1] > WIDEST
            if place := place_of(_flat(value), nan=is_picture):
                what = f"{part.text(place['index'])} is {place['value']} in env {place['env']} {when}"
                raise NotFiniteError(f"{what}, with {self._policy}. There is no result.")

    def _tensors(self, value: Any) -> Iterable[tuple[str, torch.Tensor]]:
        """Yield the tensors of real numbers with their names, each of shape (num_envs, ...)."""
        for name, tensor in leaves(value):
            if tensor.is_floating_point() and tensor.shape[:1] == (self._env.num_envs,):
                yield name, tensor


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in the shape (num_envs, width)."""
    return tensor.reshape(len(tensor), -1)
