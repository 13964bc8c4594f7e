"""The agent of a warm simulator relays lines between kernel and worker, and can become the agent of a job."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlnb.node.simulator import SAVED_BEFORE_S, Adoption
from rlnb.node.supervisor import SAVE_S
from rlnb.records.layout import JobDir
from rlnb.spec import Command, Result
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json

WAIT_S = 20.0
WORKER = """
import json, os, subprocess, sys, time
replies = os.open(sys.argv[-1], os.O_WRONLY)
os.write(replies, b'{"ready": true}\\n')
for line in sys.stdin:
    request = json.loads(line)
    if "adopt" in request:
        print("trains", request["adopt"], flush=True)
        if request["adopt"].endswith("export"):
            sys.exit(0)
        subprocess.Popen(["sleep", "600.75"], start_new_session=True)
        while os.path.exists(request["adopt"]) and not os.path.exists(request["adopt"] + "/end"):
            time.sleep(0.05)
        if os.path.exists(request["adopt"] + "/error"):
            sys.exit(3)
        os.write(replies, json.dumps({"returned": True, "pid": os.getpid()}).encode() + b"\\n")
        continue
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
    assert not (tmp_path / "log").exists(), "the agent removes the simulator's log"


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    """A training that has written its result, and goes on until it has a file named ``end``."""
    job = JobDir(tmp_path / "run" / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.command, to_json(Command(argv=("a-script",))))
    files.write_once(job.result, Result(outcome="completed", ended=files.now()))
    job.result.rename(job.path / "later.json")
    return job


def end(job: JobDir) -> None:
    """Let a training write its result and end, once it has started."""
    until_it_trains()
    (job.path / "later.json").rename(job.result)
    (job.path / "end").touch()


def until_it_trains() -> None:
    deadline = time.monotonic() + WAIT_S
    while not sleeps():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sleeps() -> bool:
    return any(process.info["cmdline"] == ["sleep", "600.75"] for process in psutil.process_iter(["cmdline"]))


def test_a_training_gives_the_simulator_back_and_leaves_nothing_else(
    agent: Agent, send: Callable[..., None], job: JobDir
) -> None:
    assert read(agent) == {"ready": True}
    (worker,) = psutil.Process(agent.pid).children()
    for number in range(2):
        send({"adopt": str(job.path)})
        assert read(agent) == {"adopted": True}
        end(job)
        assert read(agent) == {"returned": True, "pid": worker.pid}
        assert not sleeps(), "processes that the job has started end with it"
        send({"id": number})
        assert read(agent) == {"id": number}
        job.result.rename(job.path / "later.json")
        for path in (job.path / "end", job.running(0)):
            path.unlink()
    agent.terminate()
    assert agent.wait(WAIT_S) == -signal.SIGTERM, "the signal handlers of the job are gone"
    _, living = psutil.wait_procs([worker], timeout=WAIT_S)
    assert not living


def test_an_agent_ends_with_a_job_whose_result_could_not_be_written(
    agent: Agent, send: Callable[..., None], job: JobDir
) -> None:
    assert read(agent) == {"ready": True}
    (worker,) = psutil.Process(agent.pid).children()
    send({"adopt": str(job.path)})
    assert read(agent) == {"adopted": True}
    until_it_trains()
    shutil.rmtree(job.path.parent)  # by hand, so that the result has no place
    agent.wait(WAIT_S)
    assert not worker.is_running()


def test_a_simulator_trains_also_once_a_cleaner_of_temporary_folders_has_removed_its_log(
    agent: Agent, send: Callable[..., None], job: JobDir, tmp_path: Path
) -> None:
    assert read(agent) == {"ready": True}
    (worker,) = psutil.Process(agent.pid).children()
    for name in ("log", "log.replies"):
        (tmp_path / name).unlink()
    send({"adopt": str(job.path)})
    assert read(agent) == {"adopted": True}
    end(job)
    assert read(agent) == {"returned": True, "pid": worker.pid}
    send({"id": 1})
    assert read(agent) == {"id": 1}


@pytest.mark.parametrize("gone", ["kernel", "worker"])
def test_a_simulator_without_a_user_ends_with_its_training(
    agent: Agent, send: Callable[..., None], job: JobDir, tmp_path: Path, gone: str
) -> None:
    assert read(agent) == {"ready": True}
    (worker,) = psutil.Process(agent.pid).children()
    send({"adopt": str(job.path)})
    assert read(agent) == {"adopted": True}
    assert agent.stdin is not None
    if gone == "kernel":
        agent.stdin.close()
        time.sleep(1.0)
        assert worker.is_running(), "the training goes on"
    else:
        (job.path / "error").touch()
    end(job)
    agent.wait(WAIT_S)
    assert from_json(Result, files.read_json(job.result) or {}).outcome == "completed"
    assert not worker.is_running()
    assert not sleeps()
    assert not tmp_path.joinpath("log").exists(), "the agent removes the simulator's log"


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
    assert Adoption.of(b'{"id": 1, "task": "adopt"}') is None
    adoption = Adoption.of(b'{"adopt": "/runs/r/jobs/0-train"}\n')
    assert adoption is not None
    assert adoption.job == JobDir(Path("/runs/r/jobs/0-train"))


def test_a_training_in_an_adopted_simulator_ends_in_time_before_the_job_around_it(tmp_path: Path) -> None:
    line = json.dumps({"adopt": str(tmp_path), "webhook": "https://example.com", "hosted": True, "ends_s": 1000.0})
    adoption = Adoption.of(line.encode())
    assert adoption is not None
    assert adoption.job.path == tmp_path
    assert adoption.deadline == 1000.0 - SAVED_BEFORE_S
    assert SAVED_BEFORE_S > SAVE_S, "the training needs the time to save"
    here = Adoption.of(json.dumps({"adopt": str(tmp_path)}).encode())
    assert here is not None
    assert (here.deadline, here.in_job) == (None, False)
    assert Adoption.of(b'{"id": 1, "verb": "ping", "payload": {}}') is None
