"""What was read from files, kept in this process as long as the files are the same. Standard library only."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

SETTLED_S = 5.0
"""Seconds after a write from which on another write shows in the time of writing. File systems count time in steps, of
up to two seconds, and the clocks of two machines differ."""
MOST = 20_000
"""Largest number of values that are kept of a kind."""

Stamp = tuple[int, int, int]
"""Time of writing in nanoseconds, size in bytes and inode of a file or folder; zeros if there is none."""


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """Return the stamp of a file, or of a folder, whose time of writing is that of its newest change of names."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def stamps_of(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Return the stamp of each path."""
    return tuple(map(stamp_of, paths))


def is_settled(stamps: Iterable[Stamp]) -> bool:
    """Return whether every file was last written so long ago that a further write would show in its stamp."""
    latest_ns = time.time_ns() - int(SETTLED_S * 1e9)
    return all(stamp[0] < latest_ns for stamp in stamps)


class Kept(Generic[T]):
    """Values by key, each with what it depends on."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[object, T]] = {}

    def get(self, key: Hashable, state: object) -> T | None:
        """Return the value of a key; None if there is none, or if what it depends on has another state."""
        known = self._values.get(key)
        return known[1] if known is not None and known[0] == state else None

    def put(self, key: Hashable, state: object, value: T) -> None:
        """Keep a value, in place of the oldest one if there are too many."""
        if len(self._values) >= MOST and key not in self._values:
            with contextlib.suppress(RuntimeError, StopIteration):  # another thread does the same
                self._values.pop(next(iter(self._values)), None)
        self._values[key] = state, value


# -- the collector of cycles -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, also as a decorator of a function that makes many objects which all stay.

    As their number grows, it looks at all of them again and again: a fifth of the time of a list of 10,000 runs.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
