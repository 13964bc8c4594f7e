"""The node agent answers what a kernel asks about the worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rlnb.node.simulator import ControlChannel
from rlnb.protocol.code_location import location_of_stacks

WORKER = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests in the background, without it
held = bytearray(b"1" * (50 << 20))
print("ready", flush=True)
try:
    while True:
        signal.pause()
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = tmp_path / "log"
    with (
        open(log, "wb") as output,
        subprocess.Popen([sys.executable, "-c", WORKER], stdout=output, stderr=output) as process,
    ):
        while b"ready\n" not in log.read_bytes():
            assert process.poll() is None
        yield process
        process.kill()


def test_an_interrupt_the_stacks_and_the_memory_are_those_of_the_worker(
    worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    controls = ControlChannel(log)
    assert controls.answer("pulse") == {"log_bytes": len("ready\n")}
    assert controls.answer("stacks") == {"stacks": "", "end_bytes": len("ready\n")}, "the process id is not known yet"
    controls.note(b'{"ready": true, "pid": %d}' % worker.pid)
    stacks = controls.answer("stacks")
    assert stacks is not None
    assert location_of_stacks(str(stacks["stacks"])) == "<string>, line 9, in <module>"
    assert stacks["end_bytes"] == log.stat().st_size > len("ready\n")
    usage = controls.answer("usage")
    assert usage is not None
    assert int(usage["memory_bytes"]) > 50 << 20  # type: ignore[arg-type]
    assert usage["gpu_memory_bytes"] == 0
    assert controls.answer("interrupt") is None
    assert worker.wait(10) == 7


def test_a_process_that_is_not_below_the_agent_gets_no_signal(tmp_path: Path) -> None:
    program = "from subprocess import *; print(Popen(['sleep', '60'], stdout=DEVNULL, start_new_session=True).pid)"
    answer = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60)
    other = psutil.Process(int(answer.stdout))
    controls = ControlChannel(tmp_path / "log")
    controls.note(b'{"ready": true, "pid": %d}' % other.pid)
    assert controls.answer("interrupt") is None
    assert controls.answer("stacks") == {"stacks": "", "end_bytes": 0}
    with pytest.raises(psutil.TimeoutExpired):
        other.wait(0.5)
    other.kill()
