"""Answers of a node agent to the kernel of its living simulator: signals, a pulse, stacks and the use of memory.

The kernel may be on another machine, so it cannot look at the worker itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.machine import nvml
from rlnb.node.descendants import descendants
from rlnb.spec import Json
from rlnb.storage import files

if TYPE_CHECKING:
    import psutil

STACKS_WITHIN_S = 1.0
"""Seconds that a worker has to write its stacks."""


class Controls:
    """Answers the kernel's questions about a worker.

    Args:
        log: Log of the worker.
    """

    def __init__(self, log: Path) -> None:
        self._log, self._pid = log, 0

    def note(self, line: bytes) -> None:
        """Note the process id in a message of the worker, which a wrapper may have started."""
        self._pid = int(json.loads(line).get("pid") or 0) or self._pid

    def answer(self, control: str) -> Mapping[str, Json] | None:
        """Do what a kernel asks; return the message for it, or None if it needs none.

        Args:
            control: Kind of the question, as in :class:`rlnb.tasks.messages.Control`.
        """
        if control == "interrupt":
            self._signal(signal.SIGINT)
        elif control == "pulse":
            return {"log_bytes": self._size()}
        elif control == "stacks":
            return {"stacks": self._stacks(), "end_bytes": self._size()}
        elif control == "usage":
            return _usage()
        return None

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal to the worker; return whether it could be sent. A container has process ids of its own."""
        if any(process.pid == self._pid for process in descendants()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
                return True
        return False

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def _stacks(self) -> str:
        """Return the stacks that the worker appends to its log."""
        begin, deadline = self._size(), time.monotonic() + STACKS_WITHIN_S
        if not self._signal(signal.SIGUSR1):
            return ""
        while self._size() == begin and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.05)  # the stacks are written line by line
        with contextlib.suppress(OSError), files.open_regular(self._log) as file:
            file.seek(begin)
            return file.read().decode(errors="replace")
        return ""


def _usage() -> Mapping[str, Json]:
    processes = descendants()
    return {
        "memory_bytes": sum(_resident_bytes(process) for process in processes),
        "gpu_memory_bytes": nvml.process_memory_bytes({process.pid for process in processes}),
    }


def _resident_bytes(process: psutil.Process) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
