"""The numbers that a task logs, in the one form in which every RL library takes them.

RL libraries differ in what they read from ``extras["log"]``: one takes only tensors of one number, another fails at a
text. Here each value becomes a tensor of one number before a library sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from rlnb.worker.isaac import isaaclab

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

LOG = "log"
"""Key of ``extras`` under which libraries find the numbers."""
Extras: TypeAlias = Mapping[str, Any]
"""What an env returns beside the outcome of a step, with values of any type."""
KEYS = ("episode", LOG)
"""Keys of ``extras`` under which a task may log. The second takes precedence."""
MOST = 20
"""Number of values that are named, in case a task uses a new name in each step."""
FIX = "Log numbers: float, int, bool, a NumPy number, or a tensor. A vector's mean is logged."


class TaskLog:
    """Reads what an env logs."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        """A sentence for each of the first ``MOST`` values that cannot be logged, by its place, e.g.
        ``extras["log"]["state"]``, and one for all others."""

    def extras(self, extras: Any) -> Any:
        """Return a step's extras with a log of their own, whose values are tensors of shape (), float32.

        The task's own dicts and tensors are left as they are, and are not referred to.
        """
        if not isinstance(extras, Mapping) or not any(key in extras for key in KEYS):
            return extras
        return with_log(extras, self._numbers(extras))

    def _numbers(self, extras: Extras) -> dict[str, torch.Tensor]:
        import torch

        tensors: dict[Any, dict[str, torch.Tensor]] = {}  # by device
        plain: dict[str, float] = {}
        logged = self._logged(extras)
        for name, (place, value) in logged.items():
            number = self._number(value, place)
            if isinstance(number, torch.Tensor):
                tensors.setdefault(number.device, {})[name] = number
            elif number is not None:
                plain[name] = number
        found: dict[str, torch.Tensor] = {}
        if plain:
            found.update(zip(plain, torch.tensor(list(plain.values()), dtype=torch.float32).unbind(), strict=True))
        for values in tensors.values():  # one copy for all numbers of a device
            if len(values) == 1:
                found.update({name: value.detach().clone() for name, value in values.items()})
                continue
            found.update(zip(values, torch.stack([*values.values()]).detach().unbind(), strict=True))
        return {name: found[name] for name in logged if name in found}

    def _logged(self, extras: Extras) -> dict[str, tuple[str, Any]]:
        """Return the place and the value of everything that is logged, by name."""
        logged: dict[str, tuple[str, Any]] = {}
        for key in KEYS:
            if key not in extras:
                continue
            if not isinstance(extras[key], Mapping):
                self._fault(f'extras["{key}"]', extras[key], "a dict from names to numbers")
                continue
            for name, value in extras[key].items():
                logged[str(name)] = f'extras["{key}"]["{name}"]', value
        return logged

    def _number(self, value: Any, place: str) -> torch.Tensor | float | None:
        """Return a value as a number or a tensor of shape (); None if it has no number."""
        import torch

        kind = type(value)
        if kind is float or kind is int or kind is bool:
            return _float(value)
        try:
            tensor = value if isinstance(value, torch.Tensor) else _tensor(value)
            if tensor.is_complex():
                raise TypeError
            if tensor.dtype is not torch.float32:
                tensor = tensor.float()
            if tensor.dim() == 0:
                return tensor
            return tensor.mean() if tensor.numel() else None  # the mean over no env says nothing
        except Exception:  # any object of the task
            self._fault(place, value, "a number")
            return None

    def _fault(self, place: str, value: Any, expected: str) -> None:
        if place in self.faults or len(self.faults) > MOST:
            return
        what = "None" if value is None else f"of the type {type(value).__name__}"
        self.faults[place] = (
            f"{place} is {what}, not {expected}, so no curve shows it."
            if len(self.faults) < MOST
            else "The task logs more values that are not numbers, so no curve shows them."
        )
        logger.warning("%s %s", self.faults[place], FIX)


def attach(env: Any) -> None:
    """Make an env return its log in the form of :meth:`TaskLog.extras`.

    Args:
        env: The env as :func:`gymnasium.make` returns it.
    """
    raw, log = isaaclab.task_env(env), TaskLog()
    step = raw.step

    def logged(actions: Any) -> Any:
        *outcome, extras = step(actions)
        return (*outcome, log.extras(extras))

    raw.step = logged


def with_log(extras: Extras, log: Extras) -> Extras:
    """Return extras with a log, under every key under which they have one, and under :data:`LOG`."""
    return {**extras, **{key: log for key in KEYS if key in extras}, LOG: log}


def _float(value: float) -> float:
    """Return a number of Python; an integer that is too large for a float as infinity."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _tensor(value: Any) -> torch.Tensor:
    """Return a NumPy number or array, or a list of numbers, as a tensor.

    Raises:
        Exception: The value has no numbers, or is ragged.
    """
    import numpy as np
    import torch

    if value is None or isinstance(value, str | bytes):
        raise TypeError
    own = getattr(value, "torch", None)  # an array of Warp as Isaac Lab hands it out
    if isinstance(own, torch.Tensor):
        return own
    if callable(read := getattr(value, "numpy", None)):  # an array of Warp or JAX
        value = read()
    if isinstance(value, list | tuple) and any(isinstance(one, torch.Tensor) for one in value):
        return torch.stack([torch.as_tensor(one, dtype=torch.float32).cpu() for one in value])
    array = np.asarray(value)
    if array.dtype.kind == "O" and array.ndim == 0:  # such as a fraction
        return torch.tensor(float(value), dtype=torch.float32)
    if array.dtype.kind not in "fiub":
        raise TypeError
    return torch.from_numpy(array.astype(np.float32))
