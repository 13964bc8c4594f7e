"""The times that threads run and wait for a core, of real processes that share one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlnb.machine import threads


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux does not count it here.")
def test_four_busy_processes_on_one_core_wait_for_each_other() -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    pids = [process.pid for process in processes]
    try:
        time.sleep(0.5)
        before, begin_s = threads.spent(pids), time.monotonic()
        time.sleep(1.0)
        after, passed_s = threads.spent(pids), time.monotonic() - begin_s
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert {pid for pid, _ in after} == {*pids}
    spent = threads.spent_since(before, after)
    assert {pid for pid, _ in spent} == {*pids}
    lost_s, ran_s = (sum(getattr(thread, name) for thread in spent.values()) for name in ("waited_s", "ran_s"))
    assert lost_s > 1.5 * passed_s, "they lose three seconds per second together, and compute for one"
    assert 0.2 * passed_s < ran_s < 1.1 * passed_s
    assert threads.spent_since({}, after) == {}, "what threads did before the first count"
    assert threads.spent(pids) == {}, "they have ended"
