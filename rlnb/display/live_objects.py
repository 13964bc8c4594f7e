"""Everything that this kernel keeps open: dashboards, servers, views, moving pictures, sweeps."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rlnb.display import front_end

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """How an object is closed, and the execution of a cell that opened it."""

    close: Callable[[Any], object]
    cell: str
    """Empty for an object that outlives the execution of its cell."""
    execution: str


class LiveObjects:
    """The open objects of this kernel.

    An object is held weakly: a server ends with the last name for it, and a thread holds its own object.
    """

    def __init__(self) -> None:
        self._entries: weakref.WeakKeyDictionary[Any, _Entry] = weakref.WeakKeyDictionary()

    def add(self, opening: T, close: Callable[[T], object], *, follows_cell: bool = True) -> None:
        """Take up an object. Objects that an earlier execution of the same cell opened are closed: no page shows them.

        Args:
            opening: The object.
            close: A function of its class that closes it. It may be called twice.
            follows_cell: Whether the next execution of the cell closes it.
        """
        cell, execution = front_end.cell()
        for other, entry in list(self._entries.items()):
            if cell and entry.cell == cell and entry.execution != execution:
                del self._entries[other]
                entry.close(other)
        self._entries[opening] = _Entry(close=close, cell=cell if follows_cell else "", execution=execution)

    def of(self, kind: type[T]) -> list[T]:
        """Return the objects of a class that have not been replaced, ended ones included."""
        return [opening for opening in self._entries if isinstance(opening, kind)]

    def close(self) -> None:
        """Close all objects."""
        for opening, entry in list(self._entries.items()):
            entry.close(opening)
        self._entries.clear()


live_objects = LiveObjects()
"""Those of this process; closed when it exits."""
atexit.register(live_objects.close)
