"""For how long threads have waited for a core, as Linux counts it in ``/proc/<pid>/task/<tid>/schedstat``.

The second number of the file is the time that the thread has spent on a run queue, in nanoseconds; see "Scheduler
Statistics" in the kernel's documentation. A time in which a CPU quota is used up counts too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def waited_s(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return the seconds for which each thread has been ready to run but had no core; empty where they are not counted.

    Args:
        pids: Processes; those that have ended are left out.

    Returns:
        Seconds by the numbers of the process and the thread.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
                    found[pid, thread] = int(text.split()[1]) / 1e9
    return found
