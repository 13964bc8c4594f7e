"""The env of a training, whose recorded steps are repeated one call at a time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.protocol.requests import EnvData, Replay
from rlnb.records.flight import read
from rlnb.records.layout import RunDir
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.worker.actions import actions as random_or_zero
from rlnb.worker.flight import snapshot
from rlnb.worker.flight.recorder import set_random_state
from rlnb.worker.flight.snapshot import States
from rlnb.worker.isaac.env import environment
from rlnb.worker.requests.debug import DebugEnv, Values

if TYPE_CHECKING:
    import numpy as np


class ReplayEnv(DebugEnv):
    """An env that repeats recorded steps.

    Args:
        env: The env, as gymnasium made it.
        out: Folder for npz files.
        arrays: :attr:`rlnb.results.Flight.replay`.
    """

    def __init__(self, env: Any, out: str, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__(env, lambda observations: self._recorded(), out)
        self._arrays, self._states = arrays, States(self._raw)
        self._step, self._has_stepped = 0, False

    @classmethod
    def of_record(cls, request: Replay, stack: contextlib.ExitStack) -> ReplayEnv:
        """Make the env of a record, which the stack closes.

        Raises:
            RlnbError: The record is damaged.
        """
        flight = read(Path(request.flight))
        if flight is None or flight.seed is None:
            raise RlnbError(f"The record in {request.flight} is damaged, so it cannot be replayed.")
        manifest = from_json(Manifest, files.read_json(RunDir(Path(request.run)).manifest) or {})
        env, _ = stack.enter_context(
            environment(
                dataclasses.replace(request.task, num_envs=flight.num_envs),
                None,
                seed=flight.seed,
                device=request.device,
                manifest=manifest,
                deterministic=manifest.deterministic,
            )
        )
        return cls(env, request.out, flight.replay)

    def reset(self, seed: int | None) -> EnvData:
        """Bring the env into the state before the first recorded step.

        Args:
            seed: Has no effect.
        """
        import torch

        with torch.inference_mode():
            self.env.reset()
            self._step = 0
            if not self._has_stepped:  # some of the env's variables exist only after a step
                self.env.step(self._recorded())
                self._has_stepped = True
            missing = snapshot.restore(self._raw, self._states, self._arrays)
        return dataclasses.replace(self._written({"states": self._state()}), missing=tuple(missing))

    def step(self, steps: int, actions: tuple[tuple[float, ...], ...] | None) -> EnvData:
        """Repeat recorded steps; return what the last one returned, and the states after it.

        Args:
            steps: Number of steps.
            actions: Actions of each step instead of the recorded ones, of shape (num_envs, actions).

        Raises:
            RlnbError: There are not so many steps, or the actions do not fit the env.
        """
        left = len(self._arrays["random"]) - self._step
        if steps > left:
            raise RlnbError(f"steps={steps} is more than the {left} recorded steps that are left. Use replay.reset().")
        return super().step(steps, actions)

    def _advance(self, actions: Any) -> Values:
        set_random_state(self._arrays["random"][self._step], self._raw.device)
        self._step += 1
        return {**super()._advance(actions), "states": self._state()}

    def _state(self) -> Values:
        return {part.name: value for part, value in zip(self._states.parts, self._states.read(), strict=True)}

    def _recorded(self) -> Any:
        """Return the recorded actions of the next step."""
        sample = random_or_zero(self._raw, "zero")
        if isinstance(sample, Mapping):
            return {agent: self._action(f"action/{agent}", zeros) for agent, zeros in sample.items()}
        return self._action("action/", sample)

    def _action(self, key: str, zeros: Any) -> Any:
        import torch

        return torch.from_numpy(self._arrays[key][self._step].copy()).to(zeros)
