"""The thread of a kernel that runs cells and, in between, hears the messages of pages."""

from __future__ import annotations

import asyncio
import functools
import sys
import time

BUSY_S = 2.0
"""Seconds after which a running cell, or a thread that has not answered, counts as busy."""


class MainThread:
    """Whether the thread in which this object is made is busy with a cell, so that it does not hear pages.

    A cell that awaits something lets the thread's event loop run, but messages of pages wait for its end too.
    """

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._asked_s, self._answered = time.monotonic(), True
        self._cells = _cells()

    def is_busy(self) -> bool:
        """Return whether a cell has run, or the thread has not answered, for some time; ask for the next answer."""
        if self._loop is None or self._loop.is_closed():
            return True
        if self._answered:
            self._asked_s, self._answered = time.monotonic(), False
            self._loop.call_soon_threadsafe(self._answer)
        return time.monotonic() - min(self._asked_s, self._cells.since_s) > BUSY_S

    def _answer(self) -> None:
        self._answered = True


class _Cells:
    """When IPython began to run the cell that runs now."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s

    def begin(self) -> None:
        self.since_s = time.monotonic()

    def end(self) -> None:
        self.since_s = float("inf")


@functools.cache
def _cells() -> _Cells:
    """Return the state of this process's cells. The first call is made in a cell, if there are any."""
    ipython = sys.modules.get("IPython")  # marimo has none
    shell = ipython.get_ipython() if ipython is not None else None
    cells = _Cells(float("inf") if shell is None else time.monotonic())
    if shell is not None:
        shell.events.register("pre_execute", cells.begin)
        shell.events.register("post_execute", cells.end)
    return cells
