"""A worker that is silent while it starts: its stacks are logged, it is ended, and the queue continues.

The stand-in for the worker is a process without a simulator that waits for a lock forever, like two threads that
deadlock while they load C libraries.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.node import watchdog
from rlnb.node.watchdog import Watchdog
from rlnb.protocol import requests
from rlnb.simulation.pool import pool

HANGS = """
import faulthandler, signal, sys, threading
faulthandler.register(signal.SIGUSR1)
print("importing", flush=True)
def never_ends():
    threading.Event().wait()
never_ends()
"""
TALKS = """
import sys, time
for _ in range(2):
    print("still compiling", flush=True)
    time.sleep(2.5)
sys.exit(3)
"""
ADOPTED = """
import faulthandler, json, os, signal, sys, threading
faulthandler.register(signal.SIGUSR1)
replies = os.open(sys.argv[-1], os.O_WRONLY)
os.write(replies, b'{"ready": true}\\n')
def never_hears_of_its_job():
    threading.Event().wait()
for line in sys.stdin:
    if "adopt" in line:
        never_hears_of_its_job()
    reply = {"id": json.loads(line)["id"], "ok": True, "value": {}}
    os.write(replies, json.dumps(reply).encode() + b"\\n")
"""


def until(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Request stacks after 0.5 s of silence, and end the worker after 3 s."""
    monkeypatch.setenv("RLNB_START_STACKS_S", "0.5")
    monkeypatch.setenv("RLNB_START_LIMIT_S", "3")


def stand_in(folder: Path, text: str) -> str:
    """Return an interpreter command that runs a script in place of the worker."""
    (folder / "worker.py").write_text(text)
    return f"{sys.executable} {folder / 'worker.py'}"


@pytest.mark.slow
def test_a_training_that_hangs_at_its_start_logs_its_stacks_and_frees_the_queue(
    root: Path, tmp_path: Path, soon: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlnb.curves.progress.SAY_S", 0.0)
    hung = rlnb.train("Echo", library="echo", python=stand_in(tmp_path, HANGS))
    following = rlnb.train("Echo", library="echo", max_iterations=3)
    until(lambda: hung.silent_logs)
    assert "never_ends" in hung.logs()
    assert hung.state == "starting"
    with pytest.raises(rlnb.RunError, match=r"The worker hangs: it wrote nothing for 3 s while it started") as error:
        hung.wait(30)
    assert "node0.log" in str(error.value)
    assert f"no output for minutes, see {hung.silent_logs or hung.jobs[0].folder.log()}" in capfd.readouterr().err
    assert following.wait(30).state == "completed"


def test_a_worker_that_prints_again_is_not_ended(root: Path, tmp_path: Path, soon: None) -> None:
    run = rlnb.train("Echo", library="echo", python=stand_in(tmp_path, TALKS))
    until(lambda: run.silent_logs)
    until(lambda: not run.silent_logs)
    with pytest.raises(rlnb.RunError, match="the worker ended with status 3"):
        run.wait(60)


def test_a_warm_simulator_that_hangs_at_its_start_is_reported_and_ended(
    root: Path, tmp_path: Path, soon: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with pytest.raises(rlnb.WorkerError, match=r"The worker hangs: it wrote nothing for 3 s(.|\n)*never_ends"):
        pool.request(requests.Ping(), stand_in(tmp_path, HANGS), warm=False)
    assert "The worker is starting, but has written no output for minutes" in caplog.text
    assert "worker.log" in caplog.text


def test_the_stacks_of_a_handed_over_worker_that_hangs_are_in_the_log_of_its_run(
    root: Path, tmp_path: Path, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = stand_in(tmp_path, ADOPTED)
    rlnb.simulator(python=python).wait()
    monkeypatch.setattr(pool, "keeps", False)
    run = rlnb.train("Echo", library="echo", python=python, warm=True)
    with pytest.raises(rlnb.RunError, match="The worker hangs"):
        run.wait(30)
    assert "never_hears_of_its_job" in run.logs(200)
    pool.shut_down()


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[None]:
    """A child that has mapped a library with the file name of Isaac Sim's core."""
    library = next(Path(sysconfig.get_path("platlib")).rglob("*.so"))
    shutil.copy(library, tmp_path / "libcarb.so")
    code = f"import mmap; f = open({str(tmp_path / 'libcarb.so')!r}, 'rb')\n"
    code += "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"LOOK_S": 0.0, "STACKS_AFTER_S": 0.1, "END_AFTER_S": 0.2, "END_AFTER_KIT_S": 1.5}.items():
        monkeypatch.setattr(watchdog, name, seconds)


def test_isaac_sim_has_more_time(tmp_path: Path, kit: None, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch)
    start_s, watch = time.monotonic(), Watchdog(tmp_path / "log", lambda: False)
    until(watch.hangs)
    assert time.monotonic() - start_s > 1.5


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child with a worker's command line that prints one line and then hangs."""
    argv = [*stand_in(tmp_path, HANGS).split(), "-m", "rlnb.worker", "train"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_without_isaac_sim_the_usual_limit_applies_and_a_finished_start_is_not_watched(
    tmp_path: Path, worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch)
    monkeypatch.setattr(watchdog, "END_AFTER_KIT_S", 100.0)
    monkeypatch.setattr(watchdog, "_WRITTEN_WITHIN_S", 0.0)
    watch, over = Watchdog(tmp_path / "log", lambda: False), Watchdog(tmp_path / "log", lambda: True)
    logs = Watchdog(tmp_path / "log", lambda: False, logs=lambda: True)
    until(watch.hangs)
    for other in (over, logs):
        time.sleep(0.3)
        assert other.hangs() == ""
        assert not other.silent
    time.sleep(0.3)
    assert logs.hangs() == "", "a library that logs scalars has started"


def test_a_worker_hidden_by_a_container_has_more_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's containers are not children of the agent."""
    limits(monkeypatch)
    start_s, watch = time.monotonic(), Watchdog(tmp_path / "log", lambda: False)
    until(watch.hangs)
    assert time.monotonic() - start_s > 1.5


def test_an_error_of_the_file_system_does_not_end_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch)

    def stale() -> bool:
        raise OSError(116, "Stale file handle")

    assert Watchdog(tmp_path / "log", stale).hangs() == ""
