"""An interpreter behind wrappers, such as ``isaaclab.sh -p``, is like a plain one: requests, trainings, every end."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.doctor import interpreter
from rlnb.protocol import requests
from rlnb.results import Simulator
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess

WAIT_S = 30.0
WORKER = """
import ctypes, sys, time
from rlnb.protocol import requests
from rlnb.configs.card import AssetRoot
from rlnb.worker import __main__ as worker
from rlnb.worker.requests import serve

def compile(request, exchange):
    exchange.tell(requests.Compilation(seconds=0.0, cache="", cache_mib=0.0))
    time.sleep(600)

def block(request, exchange):
    ctypes.PyDLL(None).sleep(600)  # with the GIL, so that no thread of Python runs

serve._load = AssetRoot
serve._HANDLERS = {**serve._HANDLERS, requests.Compile: compile, requests.Close: block}
sys.exit(worker.main(sys.argv[4:]))
"""
"""The real worker without Isaac Lab, with a request that never ends."""


@pytest.fixture(params=["plain", "isaaclab.sh -p"])
def python(request: pytest.FixtureRequest, isaaclab_sh: str) -> str:
    """Command of an interpreter."""
    return sys.executable if request.param == "plain" else isaaclab_sh


@pytest.fixture
def living(python: str, tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A warm simulator without Isaac Lab."""
    (tmp_path / "worker.py").write_text(WORKER)
    yield pool.running(f"{python} {tmp_path / 'worker.py'}")
    pool.shut_down()


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes whose command line contains a path below a folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(f"{folder}/" in part for part in process.info["cmdline"] or ())
    ]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def agent_of(living: SimulatorProcess | Simulator) -> psutil.Process:
    """Return the agent of a warm simulator."""
    return next(process for process in psutil.Process(living.pid).parents() if "rlnb.node" in process.cmdline())


def slow(python: str) -> rlnb.Run:
    """Return a training that has started and would take minutes."""
    run = rlnb.train("Echo", library="echo", python=python, max_iterations=1000, agent={"iteration_s": 1.0})
    until(lambda: run.jobs[0].folder.started.exists())
    return run


def test_a_request_is_answered_and_the_process_id_is_the_workers(living: SimulatorProcess, tmp_path: Path) -> None:
    living.request(requests.Ping())
    worker = psutil.Process(living.pid)
    assert worker.cmdline()[1] == str(tmp_path / "worker.py")
    assert not worker.children()
    assert [path.name for path in living.log.parent.iterdir() if path.is_fifo()] == ["worker.replies"]
    living.close()
    assert not processes_of(tmp_path)
    assert not living.log.parent.exists()


@pytest.mark.parametrize("busy", [False, True])
def test_a_warm_simulator_ends_with_its_agent(living: SimulatorProcess, tmp_path: Path, busy: bool) -> None:
    living.request(requests.Ping())
    started = threading.Event()
    request = requests.Compile(task=rlnb.Task(id="Demo"))
    errors: list[Exception] = []

    def wait_for_ever() -> None:
        try:
            living.request(request, meanwhile=lambda _: started.set())
        except rlnb.WorkerError as exc:
            errors.append(exc)

    thread = threading.Thread(target=wait_for_ever)
    if busy:
        thread.start()
        assert started.wait(WAIT_S)
    agent_of(living).kill()
    until(lambda: not processes_of(tmp_path))
    if busy:
        thread.join(WAIT_S)
        assert "The warm simulator ended" in str(errors[0])


def test_a_worker_that_is_killed_ends_the_request(living: SimulatorProcess, tmp_path: Path) -> None:
    living.request(requests.Ping())
    request = requests.Compile(task=rlnb.Task(id="Demo"))
    with pytest.raises(rlnb.WorkerError, match=r"simulator ended: the worker .* SIGKILL"):
        living.request(request, meanwhile=lambda _: os.kill(living.pid, signal.SIGKILL))
    until(lambda: not processes_of(tmp_path))


def test_a_wrapper_that_is_killed_takes_its_worker_along(living: SimulatorProcess, tmp_path: Path) -> None:
    living.request(requests.Ping())
    agent_of(living).children()[0].kill()
    until(lambda: not processes_of(tmp_path))
    until(lambda: not living.alive)  # the agent ends a moment later


def test_a_worker_that_executes_no_python_is_ended_too(living: SimulatorProcess, tmp_path: Path) -> None:
    living.request(requests.Ping())
    with ThreadPoolExecutor(1) as thread:
        blocked = thread.submit(living.request, requests.Close())
        time.sleep(1.0)
        living.kill()
        with pytest.raises(rlnb.WorkerError):
            blocked.result(WAIT_S)
    until(lambda: not processes_of(tmp_path))


def test_a_training_completes(root: Path, python: str) -> None:
    assert rlnb.train("Echo", library="echo", python=python, max_iterations=3).wait(WAIT_S).state == "completed"


def test_a_run_adopts_the_warm_simulator(
    root: Path, tmp_path: Path, living: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "keeps", False)
    living.request(requests.Ping())
    run = rlnb.train("Echo", library="echo", python=living.python, warm=True, agent={"iteration_s": 1.0})
    until(lambda: run.jobs[0].folder.started.exists())
    worker = psutil.Process(living.pid)
    assert os.readlink(f"/proc/{worker.pid}/fd/0") == os.devnull
    agent_of(living).kill()
    until(lambda: not processes_of(tmp_path))


def test_cancel_ends_every_process(root: Path, python: str) -> None:
    run = slow(python)
    run.cancel()
    assert run.wait(WAIT_S).state == "cancelled"
    until(lambda: not processes_of(run.path))


def test_a_training_ends_with_its_agent(root: Path, python: str) -> None:
    run = slow(python)
    agent = next(process for process in processes_of(run.path) if "rlnb.node" in process.cmdline())
    worker = next(process for process in agent.children(recursive=True) if not process.children())
    assert os.readlink(f"/proc/{worker.pid}/fd/0") == os.devnull
    agent.kill()
    until(lambda: not processes_of(run.path))


def test_a_worker_that_runs_out_of_memory_is_reported(root: Path, python: str) -> None:
    run = slow(python)
    agent = next(process for process in processes_of(run.path) if "rlnb.node" in process.cmdline())
    next(process for process in agent.children(recursive=True) if not process.children()).kill()
    with pytest.raises(rlnb.RunError, match=r"SIGKILL \(out of memory\?\)"):
        run.wait(WAIT_S)


def test_ranks_end_with_their_agent(root: Path, isaaclab_sh: str) -> None:
    pytest.importorskip("torch")
    agent = {"iteration_s": 1.0}
    run = rlnb.train("Echo", library="echo", python=isaaclab_sh, max_iterations=1000, agent=agent, nproc_per_node=2)
    until(lambda: run.jobs[0].folder.started.exists())
    next(process for process in processes_of(run.path) if "rlnb.node" in process.cmdline()).kill()
    until(lambda: not processes_of(run.path))


@pytest.mark.isaaclab
def test_the_real_command_line_of_isaac_lab(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script isaaclab.sh of a checkout, which is not in the wheel, ends with this command."""
    from rlnb.worker.assets.packs import build

    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    monkeypatch.setattr(rlnb.options, "warm", True)
    python = shlex.join([sys.executable, "-c", "from isaaclab.cli import cli; cli()", "-p"])
    try:
        living = rlnb.simulator(python=python).wait()
        worker = psutil.Process(living.pid)
        assert worker.cmdline()[1:4] == ["-P", "-m", "rlnb.worker"]
        shown = rlnb.preview("Isaac-Cartpole-Direct", num_envs=2, steps=1, device="cpu", python=python)
        assert shown.frames["preview"]["rgb"].std() > 0
        assert living.pid == worker.pid
        agent_of(living).kill()
        psutil.wait_procs([worker], timeout=WAIT_S)
        assert not worker.is_running()
    finally:
        pool.shut_down()
    assert interpreter.look(python, WAIT_S).version("isaaclab")
