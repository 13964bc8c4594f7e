"""The whole state of an env at one moment, from which recorded steps can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.worker.flight.parts import States
from rlnb.worker.flight.variables import Variable, variables
from rlnb.worker.isaac import solver

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The state of an env before a step."""

    step: int
    """Number of the step."""
    values: Mapping[str, torch.Tensor | bool | int | float]
    """Copies of poses, velocities and joints (``"state/<name>"``), of what the solver carries on (``"solver/<name>"``)
    and of the variables of the env's code (``"variable/<path>"``)."""

    @property
    def size(self) -> int:
        """Bytes of the values."""
        import torch

        tensors = (value for value in self.values.values() if isinstance(value, torch.Tensor))
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the values as arrays."""
        import numpy as np
        import torch

        return {
            key: value.cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
            for key, value in self.values.items()
        }


def take(env: Any, states: States, step: int) -> Snapshot:
    """Return a snapshot of an env.

    Args:
        env: The task's own env.
        states: Its poses, velocities and joints.
        step: Number of the next step.
    """
    import torch

    values: dict[str, torch.Tensor | bool | int | float] = {}
    for part, state in zip(states.parts, states.read(), strict=True):
        values[f"state/{part.name}"] = state.clone()
    values |= {f"solver/{name}": array for name, array in solver.copied(env).items()}
    for variable in variables(env):
        value = variable.value
        values[f"variable/{variable.path}"] = value.clone() if isinstance(value, torch.Tensor) else value
    return Snapshot(step=step, values=values)


def restore(env: Any, states: States, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Bring an env into the state of a snapshot; return the variables of the snapshot that this env does not have.

    Args:
        env: The task's own env, with the same task, number of envs and seed. It has made at least one step, since some
            variables exist only then.
        states: Its poses, velocities and joints.
        arrays: :meth:`Snapshot.arrays`.
    """
    import torch

    def tensor(key: str) -> torch.Tensor:
        return torch.from_numpy(arrays[key].copy()).to(env.device)

    states.write([tensor(f"state/{part.name}") for part in states.parts])
    env.sim.forward()  # clears what the solver carries on, in envs whose state was just written
    for name, value in solver.memory(env).items():
        value.copy_(tensor(f"solver/{name}"))
    kept = {key for key in arrays if key.startswith("variable/")}
    done: set[str] = set()
    for kind in (bool, int, float, torch.Tensor):  # a flag may decide what else there is
        for variable in [*variables(env)]:
            key = f"variable/{variable.path}"
            if key in kept and type(variable.value) is kind:
                done.add(key)
                _set(variable, arrays[key], env.device)
    return sorted(key.removeprefix("variable/") for key in kept - done)


def _set(variable: Variable, array: np.ndarray, device: str) -> None:
    import torch

    if not isinstance(variable.value, torch.Tensor):
        variable.put(array.item())
    elif variable.value.shape == array.shape:
        variable.value.copy_(torch.from_numpy(array.copy()).to(device))
