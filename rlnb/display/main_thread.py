"""The thread of a kernel that runs cells and, in between, hears the messages of pages."""

from __future__ import annotations

import asyncio
import time

BUSY_S = 2.0
"""Seconds after which a thread that has not answered counts as busy."""


class MainThread:
    """Whether the thread in which this object is made is busy with a cell, so that it does not hear pages."""

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._asked_s, self._answered = time.monotonic(), True

    def is_busy(self) -> bool:
        """Return whether the thread has not answered for some time, and ask it for the next answer."""
        if self._loop is None or self._loop.is_closed():
            return True
        if self._answered:
            self._asked_s, self._answered = time.monotonic(), False
            self._loop.call_soon_threadsafe(self._answer)
        return time.monotonic() - self._asked_s > BUSY_S

    def _answer(self) -> None:
        self._answered = True
