"""The warm simulator is adopted by trainings and comes back. The real loop of the worker, without Isaac Lab."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.results import Simulator
from rlnb.simulation import pool as pools
from rlnb.simulation.pool import pool

WAIT_S = 30.0
WORKER = """
import sys
from rlnb.protocol import requests
from rlnb.configs.card import AssetRoot, TaskCard
from rlnb.worker import __main__ as worker
from rlnb.worker.requests import serve

serve.IDLE_S = 60.0  # no chores
serve.warmup.free_memory = lambda: print("memory freed", flush=True)
serve._load = AssetRoot
serve._HANDLERS = {**serve._HANDLERS, requests.Card: lambda request, exchange: TaskCard(task=request.task.id)}
sys.exit(worker.main(sys.argv[4:]))
"""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Command of an interpreter whose warm simulator has no Isaac Lab."""
    (tmp_path / "worker.py").write_text(WORKER)
    python = f"{sys.executable} {tmp_path / 'worker.py'}"
    monkeypatch.setattr(rlnb.options, "python", python)
    monkeypatch.setattr(pool, "keeps", True)  # a command of another test in this process may have changed it
    yield python
    pool.shut_down()
    until(lambda: not simulators(tmp_path))


def simulators(folder: Path) -> list[psutil.Process]:
    """Return the workers that serve a kernel."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        argv = process.info["cmdline"] or []
        if argv[1:2] == [str(folder / "worker.py")] and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own number of threads. With rlnb's, each of several trainings at once needs its own process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def living(root: Path, python: str) -> Simulator:
    return rlnb.simulator().wait()


def train(seconds: float, **arguments: object) -> rlnb.Run:
    """Start a training that takes some seconds."""
    agent = {"iteration_s": 0.1}
    return rlnb.train("Echo", library="echo", max_iterations=int(seconds / 0.1), agent=agent, warm=True, **arguments)


def interrupt_in(function: str, thread: int) -> None:
    """Interrupt a thread that has been in a function for a while."""

    def is_there() -> bool:
        stack = traceback.extract_stack(sys._current_frames()[thread])
        return any(frame.name == function for frame in stack)

    until(is_there)
    time.sleep(0.3)  # until it waits there for an answer
    signal.pthread_kill(thread, signal.SIGINT)


def worker_of(run: rlnb.Run) -> int:
    """Return the process id of the worker of a run."""
    until(lambda: run.jobs[0].folder.started.exists())
    (agent,) = [process for process in psutil.process_iter() if process.pid == (run.jobs[0].handle or {})["pid"]]
    return agent.children()[0].pid


def test_a_training_with_another_number_of_threads_gets_its_own_process(
    living: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = living.pid
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run = train(600)
    assert worker_of(run) != pid
    run.cancel().wait(WAIT_S)


def test_each_training_adopts_the_same_simulator(living: Simulator) -> None:
    pid, log = living.pid, living.log
    for number in range(3):
        run = train(0.2)
        assert worker_of(run) == pid
        assert run.wait(WAIT_S).state == "completed"
        assert living.wait().pid == pid
        assert living.requests == number + 2
        assert "iteration" in run.logs()
    assert log is not None
    assert "iteration" not in log.read_text(), "the output of a training goes to its own log"
    assert log.read_text().count("memory freed") >= 3, "after each training"


def test_a_training_that_was_cancelled_gives_the_simulator_back(living: Simulator) -> None:
    pid = living.pid
    run = train(600)
    assert worker_of(run) == pid
    assert run.cancel().wait(WAIT_S).state == "cancelled"
    assert worker_of(train(0.2).wait(WAIT_S)) == pid


def test_a_training_that_failed_ends_the_simulator(living: Simulator, tmp_path: Path) -> None:
    run = train(600)
    psutil.Process(worker_of(run)).kill()
    with pytest.raises(rlnb.RunError, match="SIGKILL"):
        run.wait(WAIT_S)
    until(lambda: not simulators(tmp_path))
    assert living.state == "none"


def test_a_training_keeps_its_simulator_if_the_call_that_starts_it_is_interrupted(
    living: Simulator, tmp_path: Path
) -> None:
    """The interrupt comes after the handover, and before the agent has confirmed it."""
    pid = living.pid
    agent = psutil.Process(pid).parent()
    assert agent is not None
    agent.suspend()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt_in, args=("adopt", threading.get_ident())).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            train(1.0)
    finally:
        signal.signal(signal.SIGINT, before)
        agent.resume()
    assert living.state == "none", "the next request must not wait for the training"
    other = living.wait().pid
    assert other != pid
    (run,) = rlnb.runs()
    assert run.wait(WAIT_S).state == "completed"
    until(lambda: [process.pid for process in simulators(tmp_path)] == [other])


def test_a_simulator_that_serves_meanwhile_stays_and_the_other_one_ends(living: Simulator, tmp_path: Path) -> None:
    pid = living.pid
    run = train(2.0)
    other = living.wait().pid
    assert other != pid
    run.wait(WAIT_S)
    until(lambda: [process.pid for process in simulators(tmp_path)] == [other])
    assert living.pid == other


def test_a_simulator_of_a_gpu_is_not_kept_while_another_run_trains_there(
    living: Simulator, tmp_path: Path, machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(1.0)
    until(lambda: run.jobs[0].folder.started.exists())
    machine("0a")
    monkeypatch.setattr(pools, "holders", lambda: ["another run"])
    run.wait(WAIT_S)
    until(lambda: not simulators(tmp_path))
    assert living.state == "none"
