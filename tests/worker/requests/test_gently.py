"""Work at a low priority until there is an urgent call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlnb.worker.requests.gently import Gently


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_work_has_a_low_priority_until_there_is_an_urgent_call() -> None:
    waiting: list[bool] = []
    usual, gently = priority(), Gently(lambda: bool(waiting), active=True)
    assert gently(priority) == 19
    with pytest.raises(KeyError):
        gently(lambda: {}["missing"])
    assert priority() == usual, "the main thread never has a low priority, since only root could raise it"
    waiting.append(True)
    assert gently(priority) == usual
    waiting.clear()
    assert gently(priority) == usual, "the low priority does not come back"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may raise a priority")
def test_a_call_during_the_work_ends_its_low_priority() -> None:
    waiting: list[bool] = []
    usual = priority()

    def work() -> int:
        waiting.append(True)
        deadline = time.monotonic() + 10
        while priority() == 19 and time.monotonic() < deadline:
            time.sleep(0.02)
        return priority()

    assert Gently(lambda: bool(waiting), active=True)(work) == usual


def test_a_simulator_that_is_no_spare_works_at_its_usual_priority() -> None:
    assert Gently(lambda: False, active=False)(priority) == priority()


IN_A_SESSION = """
import ctypes, os, re
from pathlib import Path
from rlnb.worker.requests.gently import Gently
group = lambda: re.search(r"nice (-?\\d+)", Path("/proc/self/autogroup").read_text()).group(1)
os.setsid()
if os.fork():
    os.wait()
else:
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: a user's own process may write its files in /proc
    waiting = []
    gently = Gently(lambda: bool(waiting), active=True, session=True)
    print(group(), gently(group), end=" ")
    waiting.append(True)
    print(gently(group), os.getsid(0) == os.getpid(), flush=True)
"""
"""A child in a session of its own, as the agent starts a worker, without the right to raise priorities."""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this Linux has no autogroups")
def test_the_session_has_a_low_priority_until_the_worker_leaves_it() -> None:
    printed = subprocess.run([sys.executable, "-c", IN_A_SESSION], capture_output=True, text=True, check=False)
    assert printed.stdout.split() == ["19", "19", "0", "True"], printed.stderr


AS_ANOTHER_USER = """
import os, sys, threading
from rlnb.tasks.messages import UNASKED
from rlnb.worker.requests.gently import Gently
os.setuid(65534)
waiting = []
gently = Gently(lambda: bool(waiting), active=True)
priority = lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
print(gently(priority))
waiting.append(True)
print(gently(priority), priority())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_a_training_of_a_user_that_may_not_raise_priorities_has_the_usual_one() -> None:
    printed = subprocess.run([sys.executable, "-c", AS_ANOTHER_USER], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["19", str(priority()), str(priority())]
