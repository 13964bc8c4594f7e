"""The objects that this kernel keeps open: dashboards, servers, 3D views, live pictures, sweeps."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rlnb.display import front_end

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """An open object, and the cell and execution that opened it."""

    opening: object
    close: Callable[[], object]
    alive: Callable[[], bool]
    cell: str
    """Id of the cell; empty for an object that the cell's next execution does not close."""
    execution: str


class LiveObjects:
    """The open objects of this kernel, including those that no variable references but a page may show."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(
        self, opening: object, *, close: Callable[[], object], alive: Callable[[], bool], follows_cell: bool = True
    ) -> None:
        """Keep an object while it is open, and close objects that an earlier execution of the same cell opened.

        Args:
            opening: The object.
            close: Closes the object.
            alive: Returns whether the object is still open.
            follows_cell: Whether the next execution of the cell closes the object.
        """
        cell, execution = front_end.cell()
        replaced = [entry for entry in self._entries if cell and entry.cell == cell and entry.execution != execution]
        for entry in replaced:
            entry.close()
        self._entries = [entry for entry in self._entries if entry not in replaced and entry.alive()]
        entry = _Entry(
            opening=opening, close=close, alive=alive, cell=cell if follows_cell else "", execution=execution
        )
        self._entries.append(entry)

    def of(self, kind: type[T]) -> list[T]:
        """Return the open objects of a class."""
        return [entry.opening for entry in self._entries if isinstance(entry.opening, kind) and entry.alive()]

    def close(self) -> None:
        """Close all objects."""
        entries, self._entries = self._entries, []
        for entry in entries:
            entry.close()


live_objects = LiveObjects()
"""The open objects of this process, which are closed when it exits."""
atexit.register(live_objects.close)
