"""What is kept of an env so that its last steps can be repeated: two snapshots, and the actions since the older one."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.worker.flight.parts import States, leaves
from rlnb.worker.flight.snapshot import Snapshot, take

if TYPE_CHECKING:
    import numpy as np
    import torch


logger = logging.getLogger(__name__)

MOST_BYTES = 64 * 2**20
"""Largest size of a snapshot. A larger env is recorded without."""


class Rewind:
    """Keeps an env's snapshots, actions and random numbers.

    Args:
        env: The task's own env.
    """

    def __init__(self, env: Any) -> None:
        self._env, self.states = env, States(env)
        self._snapshots: deque[Snapshot] = deque(maxlen=2)
        self._steps: deque[tuple[dict[str, torch.Tensor], torch.Tensor]] = deque()
        self._count = 0
        self._is_off = False

    def before_step(self, actions: Any, every: int) -> None:
        """Keep what a step needs to be repeated. An env that does not allow it is recorded without.

        Args:
            actions: Actions of the step.
            every: Steps between two snapshots.
        """
        if self._is_off:
            return
        try:
            self._keep(actions, every)
        except Exception as exc:  # the state of a task's own objects may be anything
            self._is_off = True
            self._snapshots.clear()
            self._steps.clear()
            logger.info("The last steps of this training cannot be replayed. %s: %s", type(exc).__name__, exc)

    def _keep(self, actions: Any, every: int) -> None:
        if self._count % every == 0:
            snapshot = take(self._env, self.states, self._count)
            if snapshot.size > MOST_BYTES:
                raise RlnbError(f"A snapshot of the env has {snapshot.size / 2**20:.0f} MiB")
            self._snapshots.append(snapshot)
            while self._count - len(self._steps) < self._snapshots[0].step:
                self._steps.popleft()
        self._steps.append(({name: value.clone() for name, value in leaves(actions)}, random_state(self._env.device)))
        self._count += 1

    def arrays(self) -> tuple[int | None, dict[str, np.ndarray]]:
        """Return the first step that can be repeated, and the arrays for it and all later ones; None if there is none.

        Beside those of the snapshot, they are ``"action/<agent>"`` (``"action/"`` without agents), of shape
        (steps, num_envs, width), and ``"random"``, the states of torch's generator, of shape (steps, bytes), uint8.
        """
        import torch

        if self._is_off or not self._snapshots:
            return None, {}
        arrays = self._snapshots[0].arrays()
        for name in self._steps[0][0]:
            arrays[f"action/{name}"] = torch.stack([actions[name] for actions, _ in self._steps]).cpu().numpy()
        arrays["random"] = torch.stack([state for _, state in self._steps]).numpy()
        return self._snapshots[0].step, arrays


def random_state(device: str) -> torch.Tensor:
    """Return the state of the generator of a device's random numbers, shape (bytes,), uint8, on the CPU."""
    import torch

    return torch.cuda.get_rng_state(device) if str(device).startswith("cuda") else torch.get_rng_state()


def set_random_state(state: np.ndarray, device: str) -> None:
    """Set the state of the generator of a device's random numbers.

    Args:
        state: As :func:`random_state` returns it.
        device: The device.
    """
    import torch

    tensor = torch.from_numpy(state.copy())
    if str(device).startswith("cuda"):
        torch.cuda.set_rng_state(tensor, device)
    else:
        torch.set_rng_state(tensor)
