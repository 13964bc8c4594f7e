"""The values behind a logged mean. Imports torch, which the worker's other modules import only when they need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MEANS = (torch.mean, torch.Tensor.mean)
_NUMBERS = (torch.Tensor.item, torch.Tensor.__float__)


class Means(TorchFunctionMode):
    """While this context is active, each mean over a whole tensor is kept with the values that it was taken of.

    Envs log only the mean of their success. The mean's values have the success of each env.
    """

    def __init__(self) -> None:
        super().__init__()
        self._taken: list[tuple[object, torch.Tensor]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call ``func``, and keep its argument if it takes a mean, or if it makes a Python number of a mean."""
        result = func(*args, **(kwargs or {}))
        if func in _MEANS and args and result.dim() == 0:
            self._taken.append((result, args[0].detach().clone()))  # an env may clear its own values right after
        elif func in _NUMBERS and (values := self.values_of(args[0])) is not None:
            self._taken.append((result, values))
        return result

    def values_of(self, mean: object) -> torch.Tensor | None:
        """Return the values of a mean, compared by identity; None if it was not taken in this context."""
        return next((values for taken, values in reversed(self._taken) if taken is mean), None)
