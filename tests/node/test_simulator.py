"""The agent of a living simulator relays lines between kernel and worker, and can become the agent of a job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlnb.node.simulator import Handover
from rlnb.records.layout import JobDir
from rlnb.spec import Command, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json

WAIT_S = 20.0
WORKER = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
os.write(replies, b'{"ready": true}\\n')
for line in sys.stdin:
    request = json.loads(line)
    if "adopt" in request:
        print("trains", request["adopt"], flush=True)
        sys.exit(0)
    print("answers", request["id"], flush=True)
    os.write(replies, json.dumps({"id": request["id"]}).encode() + b"\\n")
"""

Agent = subprocess.Popen[bytes]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """An agent with a stand-in for the worker that has no simulator."""
    (tmp_path / "worker.py").write_text(WORKER)
    argv = [sys.executable, "-m", "rlnb.node", "--warm", str(tmp_path / "log"), sys.executable]
    with subprocess.Popen(
        [*argv, str(tmp_path / "worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def send(agent: Agent) -> Callable[..., None]:
    def write(*messages: object) -> None:
        assert agent.stdin is not None
        agent.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        agent.stdin.flush()

    return write


def read(agent: Agent) -> Any:
    assert agent.stdout is not None
    return json.loads(agent.stdout.readline())


def test_lines_pass_both_ways_and_the_worker_ends_with_the_kernel(
    agent: Agent, send: Callable[..., None], tmp_path: Path
) -> None:
    assert read(agent) == {"ready": True}
    send({"id": 1, "text": 'a mere "adopt" in a text'}, {"id": 2})
    assert [read(agent), read(agent)] == [{"id": 1}, {"id": 2}]
    worker = psutil.Process(agent.pid).children()[0]
    assert agent.stdin is not None
    agent.stdin.close()
    assert agent.wait(WAIT_S) == 0
    _, living = psutil.wait_procs([worker], timeout=WAIT_S)
    assert not living
    assert (tmp_path / "log").read_text() == "answers 1\nanswers 2\n"


def test_after_a_handover_the_agent_detaches_from_the_kernel_and_writes_the_result(
    agent: Agent, send: Callable[..., None], tmp_path: Path
) -> None:
    job = JobDir(tmp_path / "run" / "jobs" / "0-export")
    job.path.mkdir(parents=True)
    files.write_once(job.command, to_json(Command(argv=("a-script",))))
    assert read(agent) == {"ready": True}
    send({"adopt": str(job.path)})
    assert read(agent) == {"adopted": True}
    assert agent.stdout is not None
    assert agent.stdout.read() == b"", "the agent has closed the kernel's pipe"
    assert agent.wait(WAIT_S) == 0
    assert from_json(Result, files.read_json(job.result) or {}).outcome == "completed"
    assert f"trains {job.path}" in (tmp_path / "log").read_text()


def test_the_agent_ends_with_its_worker(agent: Agent) -> None:
    assert read(agent) == {"ready": True}
    psutil.Process(agent.pid).children()[0].kill()
    assert agent.wait(WAIT_S) == 0


def test_the_agent_ends_with_its_worker_even_if_a_helper_of_the_worker_lives_on(tmp_path: Path) -> None:
    """A helper that Isaac Sim starts in C++ inherits each descriptor that is not closed on exec."""
    helper = "import os, subprocess; subprocess.Popen(['sleep', '600.25'], close_fds=False, start_new_session=True)"
    argv = [sys.executable, "-m", "rlnb.node", "--warm", str(tmp_path / "log"), sys.executable, "-c", helper]
    agent = psutil.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.wait(WAIT_S) == 0
    assert ["sleep", "600.25"] not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not (tmp_path / "log.replies").exists()


def test_a_folder_that_cannot_hold_the_pipe_is_reported_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / ("long" * 62)
    argv = [sys.executable, "-m", "rlnb.node", "--warm", str(log), sys.executable]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=WAIT_S).returncode == 1
    assert "cannot hold a named pipe" in log.read_text()
    assert "Set TMPDIR" in log.read_text()


def test_only_a_line_with_the_key_adopt_is_a_handover() -> None:
    assert Handover.of(b'{"id": 1, "task": "adopt"}') is None
    handover = Handover.of(b'{"adopt": "/runs/r/jobs/0-train"}\n')
    assert handover is not None
    assert handover.job == JobDir(Path("/runs/r/jobs/0-train"))
