"""Calls, and work at a low priority until there is an urgent one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest

from rlnb.tasks.messages import UNASKED
from rlnb.worker.requests.calls import Calls, Gently


@pytest.fixture
def kernel() -> Iterator[tuple[Calls, IO[bytes]]]:
    """Calls, and the end of the pipe that writes them."""
    reader, writer = os.pipe()
    with open(reader, "rb") as lines, open(writer, "wb", buffering=0) as end:
        yield Calls(lines.fileno()), end


def line(number: int) -> bytes:
    return json.dumps({"id": number}).encode() + b"\n"


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_calls_come_in_their_order_and_end_with_the_input(kernel: tuple[Calls, IO[bytes]]) -> None:
    calls, end = kernel
    assert not calls.waiting(0.0)
    assert not calls.urgent()
    end.write(line(UNASKED)[:5])
    assert not calls.waiting(0.1), "a part of a line"
    end.write(line(UNASKED)[5:])
    assert calls.waiting(10.0)
    assert not calls.urgent(), "a spare simulator prepares for a task"
    assert calls.waiting(0.0), "the call was read, but not yet returned"
    end.write(line(1))
    assert calls.urgent(), "the second line"
    assert calls.next() == {"id": UNASKED}
    assert calls.waiting(0.0), "both lines may have been read at once"
    assert calls.urgent()
    assert calls.next() == {"id": 1}
    end.write(b'{"adopt": "/job"}\n')
    assert calls.urgent()
    assert calls.next() == {"adopt": "/job"}
    end.close()
    assert calls.next() is None


def test_work_has_a_low_priority_until_there_is_an_urgent_call(kernel: tuple[Calls, IO[bytes]]) -> None:
    calls, end = kernel
    usual, gently = priority(), Gently(calls, active=True)
    assert gently(priority) == 19
    with pytest.raises(KeyError):
        gently(lambda: {}["missing"])
    assert priority() == usual, "the main thread never has a low priority, since nobody but root could raise it"
    end.write(line(1))
    assert gently(priority) == usual
    calls.next()
    assert gently(priority) == usual, "the low priority does not come back"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may raise a priority")
def test_a_call_during_the_work_ends_its_low_priority(kernel: tuple[Calls, IO[bytes]]) -> None:
    calls, end = kernel
    usual = priority()

    def work() -> int:
        end.write(line(1))
        deadline = time.monotonic() + 10
        while priority() == 19 and time.monotonic() < deadline:
            time.sleep(0.02)
        return priority()

    assert Gently(calls, active=True)(work) == usual


def test_a_simulator_that_is_no_spare_works_at_its_usual_priority(kernel: tuple[Calls, IO[bytes]]) -> None:
    assert Gently(kernel[0], active=False)(priority) == priority()


AS_ANOTHER_USER = """
import os, sys, threading
from rlnb.tasks.messages import UNASKED
from rlnb.worker.requests.calls import Calls, Gently
os.setuid(65534)
reader, writer = os.pipe()
gently = Gently(Calls(reader), active=True)
priority = lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
print(gently(priority))
os.write(writer, b'{"adopt": "/job"}\\n')
print(gently(priority), priority())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_a_training_of_a_user_that_may_not_raise_priorities_has_the_usual_one() -> None:
    printed = subprocess.run([sys.executable, "-c", AS_ANOTHER_USER], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["19", str(priority()), str(priority())]
