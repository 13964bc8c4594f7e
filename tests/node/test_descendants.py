"""The processes below an agent: workers are found and write their stacks, and no process survives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rlnb.node import descendants

WAIT_S = 20.0
WORKER = "import faulthandler, signal\nfaulthandler.register(signal.SIGUSR1)\nprint(flush=True)\ninput()"
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:  # twice, in a session of its own: the agent's child ends, its grandchild has detached itself
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(60)
    os._exit(0)
time.sleep(60)
"""
AGENT = """
import subprocess, sys, time
from rlnb.node.child import adopt_orphans
from rlnb.node.descendants import kill_descendants
adopt_orphans()
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline(), flush=True)
start_s = time.monotonic()
kill_descendants(float(sys.argv[2]))
print(time.monotonic() - start_s)
"""


AGENT_OF_ANOTHER_USER = """
import os, subprocess
import psutil
from rlnb.node import descendants
descendants.KILLED_S = 0.3
child = subprocess.Popen(["sleep", "60.125"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.setresuid(65534, 65534, 65534)
print(child.pid, flush=True)
descendants.kill_descendants(0.1)
print("writes its result")
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child with the command line of a worker that handles the signal for stacks."""
    (tmp_path / "worker.py").write_text(WORKER)
    argv = [sys.executable, str(tmp_path / "worker.py"), "-m", "rlnb.worker", "train"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_no_process_survives_even_if_detached_and_ignoring_sigterm() -> None:
    argv = [sys.executable, "-c", AGENT, STUBBORN, "0.3"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=WAIT_S)
    child, detached, seconds = done.stdout.split()
    assert not psutil.pid_exists(int(child))
    assert not psutil.pid_exists(int(detached))
    assert float(seconds) > 0.3, "SIGKILL comes after the grace"


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process for another user")
def test_a_process_that_cannot_be_killed_does_not_keep_the_agent_from_its_end() -> None:
    """A process of another user, such as one below sudo, gets no signal."""
    argv = [sys.executable, "-c", AGENT_OF_ANOTHER_USER]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=WAIT_S)
    child, *words = done.stdout.split(maxsplit=1)
    psutil.Process(int(child)).kill()
    assert words == ["writes its result\n"]
    assert f"did not end within 0 s of SIGKILL: {child} (sleep)" in done.stderr


def test_workers_are_python_processes_not_their_wrappers(worker: subprocess.Popen[bytes]) -> None:
    shell = ["/bin/sh", "-c", "read line", "-m", "rlnb.worker"]
    torchrun = [sys.executable, "-c", "input()", "-m", "torch.distributed.run", "-m", "rlnb.worker"]
    others = [subprocess.Popen(argv, stdin=subprocess.PIPE) for argv in (shell, torchrun)]
    try:
        assert [process.pid for process in descendants.workers()] == [worker.pid]
    finally:
        for other in others:
            other.communicate()


def test_only_workers_are_asked_for_stacks(worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of a container handles the signal too: it forwards it to a process that it would kill."""
    monkeypatch.setattr(descendants, "STACKS_S", 0.1)
    client = "import signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(1))\nprint(flush=True)\ninput()"
    argv = [sys.executable, "-c", client, "docker", "run", "image", "python", "-m", "rlnb.worker_of_a_container"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert descendants.ask_for_stacks() == 1
        assert other.poll() is None
        assert worker.poll() is None
        other.kill()
    assert worker.stderr is not None
    assert b"most recent call first" in worker.stderr.readline()


def test_a_library_counts_as_loaded_by_the_name_of_its_file() -> None:
    code = "import zlib, ctypes; ctypes.CDLL('libz.so.1'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert descendants.loaded("libz.so.1")
        assert not descendants.loaded("libno_such_library.so")
        process.kill()
