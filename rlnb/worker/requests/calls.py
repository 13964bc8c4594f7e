"""The calls of a living simulator, and its work at a low priority until the user needs it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rlnb.tasks.messages import UNASKED

FOREVER_S = 3600.0
LOOK_S = 0.1
"""Seconds between two looks for a call during work at a low priority."""

A = TypeVar("A")


class Calls:
    """Lines of JSON from the kernel.

    Args:
        descriptor: The worker's standard input.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read, self._ended = b"", False

    def waiting(self, within_s: float) -> bool:
        """Return whether a line arrives within some seconds. The end of the input counts as a line."""
        while not self._ended and b"\n" not in self._read:
            if not self._take(within_s):
                return False
        return True

    def urgent(self) -> bool:
        """Return whether a line has arrived that somebody waits for."""
        while self._take(0.0):
            pass
        *lines, _ = self._read.split(b"\n")
        return any(json.loads(line).get("id") != UNASKED for line in lines)

    def _take(self, within_s: float) -> bool:
        """Read what has arrived; return whether there was anything."""
        if self._ended or not select.select([self._descriptor], [], [], within_s)[0]:
            return False
        data = os.read(self._descriptor, 1 << 16)
        self._read, self._ended = self._read + data, not data
        return True

    def next(self) -> Mapping[str, Any] | None:
        """Wait for a line and return its values; None at the end of the input."""
        while not self.waiting(FOREVER_S):
            pass
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line) if line else None


class Gently:
    """Does the work of a spare simulator at a low priority, so that it slows no training down.

    Linux lets nobody but root raise a priority again. The work is therefore done in a thread of its own: the main
    thread, which does what the user asks for, has never had a low priority.

    Args:
        calls: Calls, of which the first urgent one ends the low priority.
        active: Whether the priority is low until then.
    """

    def __init__(self, calls: Calls, *, active: bool) -> None:
        self._calls, self._active = calls, active
        self._usual = os.getpriority(os.PRIO_PROCESS, 0)

    def __call__(self, function: Callable[[], A]) -> A:
        """Call a function and return its value, at a low priority as long as there is no urgent call."""
        if not self._active or self._calls.urgent():
            self._end()
            return function()
        values: list[A] = []
        errors: list[BaseException] = []

        def run() -> None:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
            try:
                values.append(function())
            except BaseException as exc:
                errors.append(exc)

        thread = threading.Thread(target=run, name="gently")
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
            if self._active and self._calls.urgent():
                self._end()
        if errors:
            raise errors[0]
        return values[0]

    def _end(self) -> None:
        """Give all threads their usual priority, where that is allowed. Threads of libraries are among them."""
        if not self._active:
            return
        self._active = False
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(thread), self._usual)
