"""How long threads have run, and waited for a core, as Linux counts it in ``/proc/<pid>/task/<tid>/schedstat``.

The first number of the file is the time that the thread has spent on a core, the second one the time on a run queue, in
nanoseconds; see "Scheduler Statistics" in the kernel's documentation. A time in which a CPU quota is used up counts as
time on a run queue.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class Spent(NamedTuple):
    """What a thread has done while it was ready to run, in seconds."""

    ran_s: float
    """On a core."""
    waited_s: float
    """Without a core."""


Threads = Mapping[tuple[int, int], Spent]
"""Times by the numbers of the process and the thread."""


def spent(pids: Iterable[int]) -> Threads:
    """Return the times of each thread; empty where they are not counted.

    Args:
        pids: Processes; those that have ended are left out.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    ran, waited, *_ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
                    found[pid, thread] = Spent(int(ran) / 1e9, int(waited) / 1e9)
    return found


def since(before: Threads, now: Threads) -> Threads:
    """Return what each thread has done between two counts. One that is new counts from the next one on."""
    return {
        thread: Spent(times.ran_s - before[thread].ran_s, times.waited_s - before[thread].waited_s)
        for thread, times in now.items()
        if thread in before
    }
