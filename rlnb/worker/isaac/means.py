"""The values behind a logged mean."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

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
