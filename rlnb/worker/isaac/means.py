"""The values behind a logged mean."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
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
        """Note every mean that is taken within the context, and every Python number that is made of one."""
        import torch
        from torch.overrides import TorchFunctionMode

        note, values_of = self._note, self.values_of

        class Calls(TorchFunctionMode):
            def __torch_function__(
                self,
                func: Callable[..., Any],
                types: Iterable[type],
                args: tuple[Any, ...] = (),
                kwargs: Mapping[str, Any] | None = None,
            ) -> Any:
                result = func(*args, **(kwargs or {}))
                if func in (torch.mean, torch.Tensor.mean) and args and result.dim() == 0:
                    note(result, args[0].detach().clone())  # an env may clear its own values right after
                elif func in (torch.Tensor.item, torch.Tensor.__float__):
                    note(result, values_of(args[0]))
                return result

        with Calls():
            yield

    def values_of(self, mean: object) -> torch.Tensor | None:
        """Return the values of a mean, which is compared by identity; None if it is not one of these."""
        return next((values for taken, values in reversed(self._taken) if taken is mean), None)

    def _note(self, mean: object, values: torch.Tensor | None) -> None:
        if values is not None:
            self._taken.append((mean, values))
