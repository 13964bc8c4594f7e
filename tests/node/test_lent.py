"""The process of a job whose end is a message."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from rlnb.node.supervisor import LentWorker

PROCESS = """
import os, sys
for line in sys.stdin:
    os.write(int(sys.argv[1]), line.encode())
"""


@pytest.fixture
def lent() -> Iterator[LentWorker]:
    """A process that sends each line back as a message of its own."""
    replies, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(writer)], stdin=subprocess.PIPE, pass_fds=[writer]
    ) as process:
        yield LentWorker(process, replies)
        process.kill()


def until_returned(lent: LentWorker) -> None:
    deadline = time.monotonic() + 20
    while lent.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_is_returned_before_a_job_and_once_it_says_so(lent: LentWorker) -> None:
    assert (lent.returned, lent.poll()) == (True, 0)
    lent.begin(b'{"ready": true}\n')
    assert (lent.returned, lent.poll()) == (False, None)
    lent.begin(b'{"returned": true, "pid": 7}\n')
    until_returned(lent)
    assert (lent.poll(), lent.returned, lent.line) == (0, True, b'{"returned": true, "pid": 7}\n')
    assert lent.ready


def test_a_message_that_the_process_has_started_is_not_the_end_of_the_job(lent: LentWorker) -> None:
    lent.begin(b'{"ready": true}\n')
    deadline = time.monotonic() + 20
    while not lent.ready:
        assert lent.poll() is None
        assert time.monotonic() < deadline
    assert lent.poll() is None


def test_the_exit_of_the_process_ends_the_job(lent: LentWorker) -> None:
    lent.begin(b'{"ready": true}\n')
    lent._process.kill()
    until_returned(lent)
    assert (lent.poll(), lent.returned) == (-9, False)
