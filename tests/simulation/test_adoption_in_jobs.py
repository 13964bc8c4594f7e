"""A warm simulator in a job is adopted by trainings and comes back, and its job lasts as long as the training."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from far_node import Node, interpreter, processes, until_gone

import rlnb
from rlnb.protocol import requests
from rlnb.simulation import remote_job as jobs
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import ANNOUNCED_S

WAIT_S = 60.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def living(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatorProcess]:
    monkeypatch.setattr(rlnb.options, "python", interpreter(tmp_path))
    process = pool.running(rlnb.options.python, None, Node())
    process.request(requests.Ping())
    yield process
    pool.shut_down()
    assert process.job is not None
    until_gone(process.job.folder.path, WAIT_S)


def train(iterations: int, *, warm: bool | None = True) -> rlnb.Run:
    """Start a training with a tenth of a second per iteration. The stand-in cannot train in a process of its own."""
    agent = {"iteration_s": 0.1}
    return rlnb.train("Echo", library="echo", max_iterations=iterations, agent=agent, launcher=Node(), warm=warm)


def test_a_training_takes_the_simulator_over_and_gives_it_back(living: SimulatorProcess) -> None:
    pid, job = living.pid, living.job
    run = train(10)
    assert not living.alive
    assert run.wait(WAIT_S).progress == (10, 10)
    assert not run.jobs[0].folder.handle.exists()
    until(lambda: pool.current(rlnb.options.python, None, Node()) is living)
    living.request(requests.Ping())
    assert (living.pid, living.job) == (pid, job)


def test_a_request_meanwhile_starts_another_simulator_in_the_same_job(living: SimulatorProcess) -> None:
    run = train(6000)
    until(lambda: run.state == "running")
    other = pool.running(rlnb.options.python, None, Node())
    other.request(requests.Ping())
    assert other.job is living.job
    assert other.pid != living.pid
    run.cancel()
    assert run.wait(WAIT_S).state == "cancelled"
    other.request(requests.Ping())
    assert pool.current(rlnb.options.python, None, Node()) is other


def test_a_simulator_that_was_restarted_meanwhile_is_not_kept(living: SimulatorProcess) -> None:
    """Also if the fresh one has not answered yet: the user does not want the state of the earlier one."""
    run = train(10)
    pool.restart(rlnb.options.python, None, Node())
    fresh = pool.current(rlnb.options.python, None, Node())
    assert fresh is not None
    assert fresh.job is living.job
    run.wait(WAIT_S)
    until(lambda: not living.alive and not psutil.pid_exists(living.pid))
    assert pool.current(rlnb.options.python, None, Node()) is fresh


def test_a_simulator_that_is_about_to_come_back_is_waited_for(living: SimulatorProcess) -> None:
    assert train(1).wait(WAIT_S).state == "completed"
    assert pool.running(rlnb.options.python, None, Node()) is living


def test_without_a_request_a_training_does_not_take_it_and_the_kernel_says_how(
    living: SimulatorProcess, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        run = train(1, warm=None)
    assert "holds a node of the same launcher" in caplog.text
    assert "rlnb.train(..., warm=True)" in caplog.text
    assert run.jobs[0].folder.handle.exists()
    assert living.alive
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)


def test_a_job_that_ends_soon_does_not_train(living: SimulatorProcess) -> None:
    assert living.job is not None
    for left_s, is_idle in ((ANNOUNCED_S + 60.0, True), (ANNOUNCED_S - 1.0, False)):
        living.job.ends_s = time.time() + left_s
        assert (pool.idle(rlnb.options.python, None, Node()) is living) is is_idle


def test_a_node_that_is_given_back_trains_to_the_end(living: SimulatorProcess) -> None:
    assert living.job is not None
    run = train(20)
    pool.close(rlnb.options.python, None, Node())
    assert run.wait(WAIT_S).progress == (20, 20)
    until_gone(living.job.folder.path, WAIT_S)


@pytest.mark.slow
def test_a_training_outlives_the_loss_of_all_connections_to_its_kernel(
    living: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network was away for some seconds. Then the kernel makes a request, and ends."""
    monkeypatch.setattr(jobs, "REASON_WITHIN_S", 0.5)
    run = train(120)
    until(lambda: run.state == "running")
    other, job = pool.running(rlnb.options.python, None, Node()), living.job
    other.request(requests.Ping())
    assert job is not None
    assert other.job is job
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # one of an earlier test that has ended
            if "rlnb.simulation.relay" in child.cmdline():
                child.kill()
    with pytest.raises(rlnb.WorkerError, match="does not answer any more"):
        other.request(requests.Ping())
    another = pool.running(rlnb.options.python, None, Node())
    another.request(requests.Ping())
    assert another.job is not job
    pool.shut_down()
    assert run.wait(WAIT_S).progress == (120, 120)
    until_gone(job.folder.path, WAIT_S)


def test_a_training_saves_when_the_queue_takes_the_node_of_its_simulator_away(root: Path, tmp_path: Path) -> None:
    """The queue signals all processes at once. This worker, as one with Isaac Sim may, goes on in spite of it."""
    python = interpreter(tmp_path)
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    (tmp_path / "worker.py").write_text(stubborn + (tmp_path / "worker.py").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlnb.options, "python", python)
        process = pool.running(python, None, Node())
        process.request(requests.Ping())
        run = rlnb.train(
            "Echo", library="echo", max_iterations=50, agent={"iteration_s": 4.0}, launcher=Node(), warm=True
        )
    assert process.job is not None
    until(lambda: run.state == "running")
    for member in processes(process.job.folder.path):
        member.terminate()
    until(lambda: run.result)
    assert run.result is not None
    assert run.result.interrupted
    assert run.checkpoints, "it has finished its iteration and saved"
    until_gone(process.job.folder.path, WAIT_S)
    pool.shut_down()


KERNEL = """
import sys
sys.path[:0] = sys.argv[1:]
import rlnb
from test_adoption_in_jobs import Node, pool, requests, train
process = pool.running(rlnb.options.python, None, Node())
process.request(requests.Ping())
print(train(40).path, process.job.folder.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_training_goes_on_without_the_kernel_and_then_the_job_ends(root: Path, tmp_path: Path) -> None:
    here = Path(__file__).parent
    argv = [sys.executable, "-c", KERNEL, str(here), str(here.parent / "rig")]
    env = {**os.environ, "RLNB_ROOT": str(root), "RLNB_PYTHON": interpreter(tmp_path)}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as kernel:
        assert kernel.stdout is not None
        path, job = map(Path, kernel.stdout.readline().decode().split())
        run = rlnb.Run(path)
        until(lambda: run.state == "running")
        kernel.kill()
    assert processes(job)
    assert run.wait(WAIT_S).progress == (40, 40)
    until_gone(job, 60.0)
