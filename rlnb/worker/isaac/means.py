"""The values behind a logged mean."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Means:
    """Means over whole tensors, each with the values that it was taken of.

    Envs log only the mean of their success. The mean's values have the success of each env.
    """

    def __init__(self) -> None:
        self._taken: list[tuple[object, torch.Tensor]] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note every mean that is taken within the context, and every Python number that is made of one.

        The functions themselves are replaced meanwhile. A ``TorchFunctionMode`` would see every call and attribute of
        a tensor, which made each reset of a cart-pole 0.2 ms slower.
        """
        import torch

        tensor: Any = torch.Tensor
        mean, method, item, number = torch.mean, tensor.mean, tensor.item, tensor.__float__
        functions = {
            "mean": lambda *args, **options: self._mean(method, args, options),
            "item": lambda value: self._number(item, value),
            "__float__": lambda value: self._number(number, value),
        }
        before = {name: vars(tensor).get(name) for name in functions}
        torch.mean = lambda *args, **options: self._mean(mean, args, options)  # type: ignore[assignment]
        for name, function in functions.items():
            setattr(tensor, name, function)
        try:
            yield
        finally:
            torch.mean = mean
            for name, function in before.items():
                if function is None:  # inherited from the base class
                    delattr(tensor, name)
                else:
                    setattr(tensor, name, function)

    def _mean(self, function: Callable[..., torch.Tensor], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        result = function(*args, **options)
        if args and result.dim() == 0:
            self._note(result, args[0].detach().clone())  # an env may clear its own values right after
        return result

    def _number(self, function: Callable[[torch.Tensor], Any], tensor: torch.Tensor) -> Any:
        result = function(tensor)
        self._note(result, self.values_of(tensor))
        return result

    def values_of(self, mean: object) -> torch.Tensor | None:
        """Return the values of a mean, which is compared by identity; None if it is not one of these."""
        return next((values for taken, values in reversed(self._taken) if taken is mean), None)

    def _note(self, mean: object, values: torch.Tensor | None) -> None:
        if values is not None:
            self._taken.append((mean, values))
