"""The protocol from end to end: the real loop of the worker in a separate process, without Isaac Lab."""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.configs.card import TaskCard
from rlnb.display.status import status
from rlnb.protocol import requests
from rlnb.protocol.messages import Connected, Ended, Hangs, Pulse, Ready, Stacks, Usage, Waiting
from rlnb.simulation import process
from rlnb.simulation.pool import pool
from rlnb.simulation.process import Condition, SimulatorProcess

WORKER = """
import faulthandler, os, signal, sys, time
from pathlib import Path
from rlnb import errors
from rlnb.errors import Problem
from rlnb.protocol import requests
from rlnb.configs.card import AssetRoot, TaskCard
from rlnb.worker.requests import serve

class PluginError(errors.NotFoundError):
    pass

PROBLEMS = [Problem(what="num_envs=0: 2 problems", fix="num_envs=4"), Problem(what="no camera")]
ERRORS = {
    "rlnb": errors.RlnbError("viser is not installed"),
    "not-found": errors.unknown("task", "typo", ["taxi", "typos"]),
    "check": errors.CheckError("task Demo: of mine", PROBLEMS),
    "run": errors.RunError("the run failed"),
    "worker": errors.WorkerError("a worker of this worker ended"),
    "plugin": PluginError("a plugin's own class"),
    "own-code": ValueError("no such joint"),
    "exit": SystemExit(3),
}

def card(request, exchange):
    if request.task.id == "endless":
        print("an endless loop", flush=True)
        exchange.tell(TaskCard(task="endless", num_envs=1))
        while True:
            pass
    if request.task.id == "blocked":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        exchange.tell(TaskCard(task="blocked", num_envs=1))
        time.sleep(600)
    if request.task.id in ERRORS:
        raise ERRORS[request.task.id]
    exchange.tell(TaskCard(task="interim", num_envs=1))
    return TaskCard(task=request.task.id, asset_root=exchange.root)

faulthandler.register(signal.SIGUSR1)
serve.IDLE_S = 60.0
serve._load = lambda: AssetRoot(path=os.environ.get("RLNB_ASSET_ROOT", ""))
def view(request, exchange):
    def push(push):
        if push.velocity == (666.0,):
            os._exit(1)
        if push.velocity == (777.0,):
            time.sleep(0.7)
        if push.velocity != (1.0, 0.0):
            raise errors.RlnbError(f"a push of {push.velocity}")

    address = requests.ViewAddress(port=1)
    exchange.tell(address)
    while not exchange.side_calls.answer(push):
        time.sleep(0.01)
    return address

serve._HANDLERS = {**serve._HANDLERS, requests.Card: card, requests.View: view}
sys.exit(serve.serve(Path(sys.argv[-1])))
"""


ENDLESS = requests.Card(task=rlnb.Task(id="endless"))


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    folder = tmp_path_factory.mktemp("worker")
    (folder / "worker.py").write_text(WORKER)
    process = SimulatorProcess(f"{sys.executable} {folder / 'worker.py'}", "/assets", folder / "log" / "worker.log")
    yield process
    process.close()


@pytest.fixture
def own_worker(tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A worker that the test may end."""
    (tmp_path / "worker.py").write_text(WORKER)
    own = SimulatorProcess(f"{sys.executable} {tmp_path / 'worker.py'}", "/assets", tmp_path / "log" / "worker.log")
    yield own
    own.close()


def error_of(worker: SimulatorProcess, task: str) -> rlnb.RlnbError:
    """Return the error that requesting the card of a task raises."""
    with pytest.raises(rlnb.RlnbError) as caught:
        worker.request(requests.Card(task=rlnb.Task(id=task)))
    assert worker.alive, "the worker survives every error"
    return caught.value


def test_a_worker_that_another_thread_has_closed_is_reported_as_ended(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    process = SimulatorProcess(f"{sys.executable} {tmp_path / 'worker.py'}", "/assets", tmp_path / "log" / "worker.log")
    process.request(requests.Ping())
    process.close()
    with pytest.raises(rlnb.WorkerError, match="The warm simulator ended"):
        process.request(requests.Ping())


@pytest.mark.parametrize(
    ("task", "kind", "message"),
    [
        ("rlnb", rlnb.RlnbError, "viser is not installed"),
        ("not-found", rlnb.NotFoundError, "No task named 'typo'. Installed: taxi, typos. Did you mean 'typos'?"),
        ("run", rlnb.RunError, "the run failed"),
        ("worker", rlnb.WorkerError, "a worker of this worker ended"),
        ("plugin", rlnb.NotFoundError, "a plugin's own class"),
    ],
)
def test_an_error_of_rlnb_keeps_its_class_and_its_message(
    worker: SimulatorProcess, task: str, kind: type[rlnb.RlnbError], message: str
) -> None:
    error = error_of(worker, task)
    assert (type(error), str(error)) == (kind, message)


def test_without_a_view_a_side_request_does_not_wait_for_an_answer(own_worker: SimulatorProcess) -> None:
    with pytest.raises(rlnb.WorkerError, match="The view is closed"):
        own_worker.side_request(requests.Push(velocity=(1.0, 0.0)))


@pytest.fixture
def shown(own_worker: SimulatorProcess) -> Iterator[Future[requests.ViewAddress]]:
    """A view of the worker, which is open."""
    opened, view = threading.Event(), requests.View(task=rlnb.Task(id="Demo"), num_envs=1)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(own_worker.request, view, meanwhile=lambda _: opened.set())
        assert opened.wait(60)
        yield future
        own_worker.close()


def test_side_requests_are_answered_while_a_view_is_open(
    own_worker: SimulatorProcess, shown: Future[requests.ViewAddress]
) -> None:
    own_worker.side_request(requests.Push(velocity=(1.0, 0.0)))
    with pytest.raises(rlnb.RlnbError, match=r"a push of \(2.0,\)"):
        own_worker.side_request(requests.Push(velocity=(2.0,)))
    assert not shown.done(), "the view goes on"
    own_worker.close()
    with pytest.raises(rlnb.WorkerError, match="The warm simulator ended"):
        shown.result(10)
    with pytest.raises(rlnb.WorkerError, match=r"The simulator has ended\."):
        own_worker.side_request(requests.Push(velocity=(1.0, 0.0)))


def test_a_side_request_ends_with_the_worker(own_worker: SimulatorProcess, shown: Future[requests.ViewAddress]) -> None:
    with pytest.raises(rlnb.WorkerError, match=r"The simulator has ended\."):
        own_worker.side_request(requests.Push(velocity=(666.0,)))
    with pytest.raises(rlnb.WorkerError, match="The warm simulator ended"):
        shown.result(10)


def test_a_side_request_is_given_up_after_its_time(
    own_worker: SimulatorProcess, shown: Future[requests.ViewAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests.Push, "limit_s", 0.5)
    with pytest.raises(rlnb.WorkerError, match="resume it"):
        own_worker.side_request(requests.Push(velocity=(777.0,)))
    own_worker.side_request(requests.Push(velocity=(1.0, 0.0)))


def test_a_check_error_keeps_its_problems(worker: SimulatorProcess) -> None:
    error = error_of(worker, "check")
    assert isinstance(error, rlnb.CheckError)
    assert [(problem.what, problem.fix) for problem in error.problems] == [
        ("num_envs=0: 2 problems", "num_envs=4"),
        ("no camera", ""),
    ]
    assert str(error).startswith("task Demo: of mine: 2 problems, nothing was started.\n")


@pytest.mark.parametrize(("task", "message"), [("own-code", "ValueError: no such joint"), ("exit", "SystemExit: 3")])
def test_an_error_of_the_tasks_own_code_is_a_worker_error_with_its_traceback(
    worker: SimulatorProcess, task: str, message: str
) -> None:
    error = error_of(worker, task)
    assert type(error) is rlnb.WorkerError
    first, *others = str(error).splitlines()
    assert re.fullmatch(rf".*/worker\.py, line \d+, in card: {message}", first)
    assert "raise ERRORS[request.task.id]" in "".join(others)
    assert "rlnb/worker/requests/serve.py" not in str(error)
    assert "rlnb/worker/requests/serve.py" in error.detail


def test_an_answer_and_interim_values_have_the_type_of_the_request(worker: SimulatorProcess) -> None:
    cards: list[TaskCard] = []
    card = worker.request(requests.Card(task=rlnb.Task(id="Demo")), meanwhile=cards.append)
    assert (card.task, card.asset_root.path) == ("Demo", "/assets")
    assert [interim.task for interim in cards] == ["interim"]


def test_a_misspelled_task_is_caught_as_a_name_that_does_not_exist(root: Path, worker: SimulatorProcess) -> None:
    try:
        with pytest.raises(rlnb.NotFoundError, match="Did you mean 'typos'"):
            rlnb.preview("not-found", python=worker.python, warm=True)
    finally:
        pool.shut_down()


OF_ANOTHER_VERSION = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
def send(message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
send({"ready": True})
send({"silent": "/log/of/stacks"})
send({"id": 99, "value": {"of": "an interrupted request"}})
send({"news": "of a kind that is not known yet"})
for line in sys.stdin:
    send({"id": json.loads(line)["id"], "ok": True, "value": {"task": "Demo", "gym": 6}})
"""


def test_an_answer_of_another_version_names_both(tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "worker.py").write_text(OF_ANOTHER_VERSION)
    with pytest.raises(
        rlnb.WorkerError, match=f"another version of rlnb.* rlnb {rlnb.__version__} in this process"
    ) as caught:
        rlnb.task("Demo").card(python=f"{sys.executable} {tmp_path / 'worker.py'}")
    assert "TaskCard has no field 'gym'" in str(caught.value)
    assert "/log/of/stacks" in caplog.text


@pytest.fixture
def python_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, as in a kernel. Importing dask_jobqueue.runner changes that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(worker: SimulatorProcess, task: str) -> float:
    """Interrupt a request as a notebook does; return the seconds until the cell ends."""
    begun_s = []

    def interrupt_soon(_: TaskCard) -> None:
        """Interrupt the wait for the rest of an answer, now that the worker is at work."""
        begun_s.append(time.monotonic())
        threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()

    with pytest.raises(KeyboardInterrupt):
        worker.request(requests.Card(task=rlnb.Task(id=task)), meanwhile=interrupt_soon)
    return time.monotonic() - begun_s[0] - 0.2


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_ends_a_request_and_the_next_one_works(
    own_worker: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "INTERRUPTED_WITHIN_S", 30.0)  # a busy machine reacts late
    own_worker.request(requests.Ping())
    pid = own_worker.pid
    assert interrupted(own_worker, "endless") < 2.0
    own_worker.settle()
    assert not own_worker.busy
    assert own_worker.request(requests.Card(task=rlnb.Task(id="Demo"))).task == "Demo"
    assert own_worker.pid == pid


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_ends_a_worker_that_does_not_react(own_worker: SimulatorProcess) -> None:
    own_worker.request(requests.Ping())
    worker = psutil.Process(own_worker.pid)
    assert interrupted(own_worker, "blocked") < 2.0
    assert own_worker.busy
    own_worker.settle()
    assert not psutil.wait_procs([worker], timeout=5)[1]
    deadline = time.monotonic() + 5.0
    while own_worker.alive:  # the agent ends a moment after the worker
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_busy_simulator_says_so_and_a_second_request_says_what_it_waits_for(
    own_worker: SimulatorProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "SAY_S", 0.2)
    own_worker.request(requests.Ping())
    slow = ThreadPoolExecutor(1).submit(own_worker.request, ENDLESS)
    time.sleep(0.5)
    assert own_worker.busy
    threading.Timer(1.0, own_worker.kill).start()
    with status("Resolving Demo"), pytest.raises(rlnb.WorkerError):
        own_worker.request(requests.Card(task=rlnb.Task(id="Demo")))
    with pytest.raises(rlnb.WorkerError):
        slow.result()
    assert "Resolving Demo: waiting for 'card' of this kernel, which began at" in capsys.readouterr().err


def test_a_request_without_a_sign_of_life_ends_and_says_where_the_simulator_was(
    own_worker: SimulatorProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_worker.request(requests.Ping())
    monkeypatch.setattr(process, "SAY_S", 0.2)
    monkeypatch.setattr(process, "STACK_EVERY_S", 0.5)
    monkeypatch.setattr(requests.Card, "limit_s", 2.0)
    with status("Resolving endless"), pytest.raises(rlnb.WorkerError) as raised:
        own_worker.request(ENDLESS)
    assert "has written nothing for 2 s while it worked on 'card'" in str(raised.value)
    assert re.search(r"It was in .*worker.py, line \d+, in card", str(raised.value))
    assert re.search(r"the simulator is busy in .*worker.py, line \d+, in card", capsys.readouterr().err)
    assert not own_worker.alive


@pytest.mark.usefixtures("python_interrupts")
def test_a_request_that_waits_does_not_take_the_answer_to_an_interrupted_one(
    own_worker: SimulatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "INTERRUPTED_WITHIN_S", 30.0)  # a busy machine reacts late
    own_worker.request(requests.Ping())
    pid, thread = own_worker.pid, ThreadPoolExecutor(1)
    waiting: list[Future[None]] = []
    threading.Timer(0.5, lambda: waiting.append(thread.submit(own_worker.request, requests.Ping()))).start()
    interrupted(own_worker, "endless")
    own_worker.settle()
    waiting[0].result(30)
    assert own_worker.alive
    assert own_worker.pid == pid


# -- condition -------------------------------------------------------------------------------------------------------


STACKS = """Current thread 0x1 (most recent call first):
  File "/home/me/puck.py", line 31 in _reset_idx
"""


def test_a_simulator_in_a_job_waits_then_starts_and_is_busy_in_a_place() -> None:
    condition = Condition("slurm")
    assert (str(condition), condition.connected) == ("the simulator's job on slurm waits", False)
    condition.note(Waiting(waits="PENDING (Resources)"))
    assert str(condition) == "the simulator's job on slurm waits: PENDING (Resources)"
    condition.note(Connected(host="node3"))
    assert str(condition) == "the simulator is starting"
    condition.note(Ready(pid=7))
    condition.note(Stacks(stacks=STACKS, end_bytes=40))
    assert str(condition) == "the simulator is busy in /home/me/puck.py, line 31, in _reset_idx"
    assert condition.log_bytes == 40


def test_the_newest_values_and_the_reason_of_the_end_are_kept() -> None:
    condition = Condition()
    for message in (Pulse(log_bytes=9), Usage(memory_bytes=5), Ended(ended="Aborted"), Hangs(hangs="It hangs."), None):
        condition.note(message)
    assert condition.log_bytes == 9
    assert condition.usage == Usage(memory_bytes=5)
    assert (condition.reason, condition.last_output) == ("It hangs.", "Aborted")
