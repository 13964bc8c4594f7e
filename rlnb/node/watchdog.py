"""Watch a worker while it starts: request its stacks when it is silent, and report that it hangs after a limit.

The node agent does this. It runs outside the worker, so it works even if the worker's threads are deadlocked.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rlnb.node.descendants import ask_for_stacks, loaded, workers
from rlnb.storage import entries

STACKS_AFTER_S = 120.0
"""Seconds without output after which the stack of every thread of the worker is requested."""
END_AFTER_S = 900.0
"""Seconds without output after which the worker counts as hung and is ended."""
END_AFTER_KIT_S = 3600.0
"""Like ``END_AFTER_S``, if Isaac Sim starts, which compiles shaders first, or if a container hides the worker."""
LOOK_S = 1.0
_WRITTEN_WITHIN_S = 10.0
"""Seconds to wait for the stacks to be written, enough for a busy machine."""
_KIT = "libcarb.so"
"""Library that every process of Isaac Sim loads (Carbonite, the core of NVIDIA's Kit)."""


class Watchdog:
    """Watches the log of a worker until the worker has started.

    The variables RLNB_START_STACKS_S and RLNB_START_LIMIT_S replace the limits.

    Args:
        log: The worker's log.
        started: Returns whether the worker has started. Called every second.
        logs: Returns whether the worker logs scalars, which a library may do without reporting its start. Called only
            while the worker is silent.
        mark: File that exists while the worker is silent, for a kernel that waits for the run.
        earlier_log: Log of a warm simulator that was handed over and may still write there.
    """

    def __init__(
        self,
        log: Path,
        started: Callable[[], bool],
        *,
        logs: Callable[[], bool] = lambda: False,
        mark: Path | None = None,
        earlier_log: IO[bytes] | None = None,
    ) -> None:
        self._log, self._started, self._logs = log, started, logs
        self._mark, self._earlier_log = mark, earlier_log
        self._over = self._silent = False
        self._size, self._since, self._looked = -1, time.monotonic(), 0.0

    @property
    def silent(self) -> bool:
        """Whether the worker has been silent for so long that its stacks were requested."""
        return self._silent

    def hangs(self) -> str:
        """Check the log; return a message if the worker hangs, and an empty string while it may still start."""
        now = time.monotonic()
        if self._over or now - self._looked < LOOK_S:
            return ""
        self._looked = now
        with contextlib.suppress(OSError):  # after an error of the file system, the next check decides
            return self._look(now)
        return ""

    def _look(self, now: float) -> str:
        self._over, size = self._started(), self._written()
        if self._over or size != self._size:
            self._set(silent=False)
            self._size, self._since = size, now
            return ""
        silence_s = now - self._since
        if silence_s <= _seconds("RLNB_START_STACKS_S", STACKS_AFTER_S):
            return ""
        if self._logs():
            self._over = True
            return ""
        if not self._silent:
            self._write_stacks()
        limit_s = _seconds("RLNB_START_LIMIT_S", END_AFTER_S)
        if silence_s > limit_s and (loaded(_KIT) or not workers()):
            limit_s = _seconds("RLNB_START_LIMIT_S", END_AFTER_KIT_S)
        if silence_s <= limit_s:
            return ""
        self._write_stacks()
        return (
            f"The worker hangs: it wrote nothing for {limit_s:.0f} s while it started, and was ended. "
            f"The end of {self._log} shows where each of its threads was."
        )

    def _write_stacks(self) -> None:
        """Request the stacks and wait until they are written, so that they do not count as output."""
        before, count = self._written(), ask_for_stacks()
        deadline = time.monotonic() + _WRITTEN_WITHIN_S
        while count and self._written() == before and time.monotonic() < deadline:
            time.sleep(0.1)
        if self._earlier_log is not None:
            with entries.open_to_add(self._log) as log:
                log.write(self._earlier_log.read())
        self._size = self._written()
        self._set(silent=True)

    def _written(self) -> int:
        """Return the number of bytes that the worker has written."""
        earlier = os.fstat(self._earlier_log.fileno()).st_size if self._earlier_log is not None else 0
        return earlier + (self._log.stat().st_size if self._log.exists() else 0)

    def _set(self, *, silent: bool) -> None:
        if silent != self._silent:
            self._silent = silent
            if self._mark is not None:
                with contextlib.suppress(OSError):  # a full disk must not end the job
                    entries.touch(self._mark) if silent else entries.remove(self._mark)


def _seconds(variable: str, default: float) -> float:
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return default
