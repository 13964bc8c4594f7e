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
        a tensor, which made the resets of 512 envs 0.3 ms slower each.
        """
        import torch

        mean, method = torch.mean, torch.Tensor.mean
        item, number = torch.Tensor.item, torch.Tensor.__float__
        with (
            _replaced(torch, "mean", lambda *args, **options: self._mean(mean, args, options)),
            _replaced(torch.Tensor, "mean", lambda *args, **options: self._mean(method, args, options)),
            _replaced(torch.Tensor, "item", lambda tensor: self._number(item, tensor)),
            _replaced(torch.Tensor, "__float__", lambda tensor: self._number(number, tensor)),
        ):
            yield

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


@contextlib.contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Replace a function of a module or a class, which may inherit it, within the context."""
    own = vars(owner).get(name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
