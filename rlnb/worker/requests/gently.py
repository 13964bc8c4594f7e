"""The work of a spare simulator at a low priority, until the user needs the simulator."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

LOWEST = 19
"""Nice value of the lowest priority."""
_AUTOGROUP = Path("/proc/self/autogroup")
LOOK_S = 0.1
"""Seconds between two looks for an urgent call."""

A = TypeVar("A")


class Gently:
    """Does the work of a spare simulator at a low priority, so that it slows no training down.

    Linux lets only root raise a priority again. The work is therefore done in a thread of its own. The main thread,
    which does what the user asks for, never has a low priority.
    Where Linux shares the cores between sessions (autogroups, see sched(7)), the priorities of threads count within
    their session only. The agent's session then gets the low priority too, and this process leaves that session.

    Args:
        urgent: Returns whether an urgent call has arrived, which ends the low priority.
        active: Whether the priority is low until then.
        session: Whether the session gets the low priority too, and is left at the end.
    """

    def __init__(self, urgent: Callable[[], bool], *, active: bool, session: bool = False) -> None:
        self._urgent, self._active, self._session = urgent, active, session
        self._usual = os.getpriority(os.PRIO_PROCESS, 0)
        if active and session:
            with contextlib.suppress(OSError):  # without autogroups
                _AUTOGROUP.write_text(str(LOWEST))

    def __call__(self, function: Callable[[], A]) -> A:
        """Call a function and return its value, at a low priority as long as there is no urgent call."""
        if not self._active or self._urgent():
            self._end()
            return function()
        values: list[A] = []
        errors: list[BaseException] = []

        def run() -> None:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)
            try:
                values.append(function())
            except BaseException as exc:
                errors.append(exc)

        thread = threading.Thread(target=run, name="gently")
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
            if self._active and self._urgent():
                self._end()
        if errors:
            raise errors[0]
        return values[0]

    def _end(self) -> None:
        """Give all threads their usual priority, where that is allowed. Threads of libraries are among them."""
        if not self._active:
            return
        self._active = False
        if self._session:
            with contextlib.suppress(OSError):  # it leads a session already, as a process that no agent has started
                os.setsid()
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(thread), self._usual)
