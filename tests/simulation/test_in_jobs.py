"""A warm simulator in a job: requests, files and ports pass through, and the job ends with its user."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from far_node import Node, interpreter, killed_kernels_job, processes, until_gone

import rlnb
from rlnb.interactive.simulator import Simulator
from rlnb.node.remote_job import LINGER_S
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import ANNOUNCED_S

WAIT_S = 60.0


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    folder = tmp_path_factory.mktemp("node")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlnb.options, "root", folder / "root")
        process = pool.running(interpreter(folder), "/assets", Node())
        process.request(requests.Ping())
        yield process
        pool.shut_down()
        assert process.job is not None
        until_gone(process.job.folder.path, WAIT_S)


@pytest.fixture
def own(root: Path, tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A simulator that the test may end."""
    process = pool.running(interpreter(tmp_path), None, Node())
    process.request(requests.Ping())
    yield process
    pool.shut_down()


def task_in(folder: Path, text: str = "import helper") -> rlnb.Task:
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text("VALUE = 1")
    (folder / "lift.py").write_text(text)
    return rlnb.Task(id="Lift", source=str(folder / "lift.py"), files={"helper.py": "0"})


def test_the_node_agent_answers_and_the_job_says_where_it_is(living: SimulatorProcess) -> None:
    assert living.job is not None
    assert str(living.job) == f"local on {socket.gethostname()}"
    assert living.usage().memory_bytes > 10 << 20
    key = living.job.folder.key
    assert key.stat().st_mode & 0o077 == 0
    assert len(processes(living.job.folder.path)) >= 4, "agent, server, the simulator's agent, worker"


def test_the_module_of_a_task_travels_and_paths_are_those_of_the_kernel(
    living: SimulatorProcess, tmp_path: Path
) -> None:
    task = task_in(tmp_path / "cell")
    card = living.request(requests.Card(task=task))
    assert card.task == "import helper"
    assert card.sources == {str(task.source): "import helper", "helper.py": "9"}
    (tmp_path / "cell" / "lift.py").write_text("an edit")
    assert living.request(requests.Card(task=task)).task == "an edit"
    with pytest.raises(rlnb.RlnbError, match=f"^{task.source} has no env config$"):
        living.request(requests.Card(task=rlnb.Task(id="error", source=task.source)))


def test_files_travel_into_the_folder_of_the_request_before_the_message_that_names_them(
    living: SimulatorProcess, tmp_path: Path
) -> None:
    first: list[int] = []
    out = tmp_path / "out"
    out.mkdir()
    request = requests.Preview(task=rlnb.Task(id="Lift"), num_envs=1, steps=1, size=(8, 8), out=str(out))
    clip = living.request(request, meanwhile=lambda clip: first.append(Path(clip.file).stat().st_size))
    assert first == [1 << 20]
    assert clip.file == str(out / "last.npz")
    assert Path(clip.file).stat().st_size == 1 << 20


def test_a_run_whose_folder_the_node_does_not_see_is_named(living: SimulatorProcess, tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"does not see .*/nope\. Evaluations, films and exports of a run need"):
        living.request(requests.RunJob(kind="evaluate", job_dir=str(tmp_path / "nope")))
    assert living.alive


def test_the_port_of_a_view_is_one_of_this_machine(living: SimulatorProcess) -> None:
    assert living.job is not None
    view = pool.start(living.python, living.asset_root, living.job.launcher)
    assert view.job is living.job, "the job has two simulators"
    ports: list[int] = []
    request = requests.View(task=rlnb.Task(id="Lift"), num_envs=1)

    def show() -> None:
        with contextlib.suppress(rlnb.WorkerError):
            view.request(request, meanwhile=lambda address: ports.append(address.port))

    thread = threading.Thread(target=show)
    thread.start()
    deadline = time.monotonic() + WAIT_S
    while not ports:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for text in (b"one", b"two"):
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=20) as browser:
            browser.sendall(text)
            assert browser.recv(100) == b"the view got " + text
    view.side_request(requests.Push(velocity=(1.0, 0.5)))
    view.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    living.request(requests.Ping())


def address_of(living: SimulatorProcess) -> tuple[str, int]:
    assert living.job is not None
    address = json.loads(living.job.folder.address.read_text())
    return address["hosts"][0], address["port"]


def test_a_client_without_the_key_of_the_job_is_refused(living: SimulatorProcess, tmp_path: Path) -> None:
    from rlnb.protocol.tls import write_key

    write_key(tmp_path / "other.pem")
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    another = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    another.check_hostname, another.verify_mode = False, ssl.CERT_NONE
    another.load_cert_chain(tmp_path / "other.pem")
    for context in (anyone, another):
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(address_of(living), timeout=20) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(json.dumps({"rlnb": rlnb.__version__}).encode() + b"\n")
            answer = connection.recv(100)
        assert answer == b"", "the answer to a client without the key"
    with socket.create_connection(address_of(living), timeout=20) as plain:
        plain.sendall(b'{"rlnb": "1"}\n')
        assert b"host" not in plain.recv(100)
    living.request(requests.Ping())


def test_another_version_is_refused_with_both_names(living: SimulatorProcess) -> None:
    from rlnb.protocol import tls

    assert living.job is not None
    with (
        socket.create_connection(address_of(living), timeout=20) as plain,
        tls.context(living.job.folder.key, server=False).wrap_socket(plain) as connection,
    ):
        connection.sendall(b'{"rlnb": "0.0.1"}\n')
        answer = json.loads(connection.makefile("rb").readline())
    assert f"The kernel has rlnb 0.0.1, and the node {socket.gethostname()} has rlnb" in answer["hangs"]


@pytest.mark.slow
def test_a_worker_that_crashes_is_reported_and_the_job_goes_on(own: SimulatorProcess) -> None:
    assert own.job is not None
    with pytest.raises(rlnb.WorkerError, match="The warm simulator ended") as raised:
        own.request(requests.Card(task=rlnb.Task(id="crash")))
    assert "about to crash" in str(raised.value)
    time.sleep(LINGER_S + 3.0)  # a person reads the error
    again = pool.running(own.python, own.asset_root, own.job.launcher)
    again.request(requests.Ping())
    assert again.job is own.job


def test_a_node_that_is_lost_is_named_within_ten_seconds_and_the_next_request_starts_another(
    own: SimulatorProcess,
) -> None:
    assert own.job is not None
    lost = processes(own.job.folder.path)
    threading.Timer(1.0, lambda: [process.kill() for process in lost]).start()
    begin_s = time.monotonic()
    with pytest.raises(rlnb.WorkerError, match=f"The warm simulator on {socket.gethostname()} does not answer"):
        own.request(requests.Card(task=rlnb.Task(id="endless")))
    assert time.monotonic() - begin_s < 11.0
    again = pool.running(own.python, own.asset_root, own.job.launcher)
    again.request(requests.Ping())
    assert again.job is not own.job


def test_a_full_disk_of_the_node_is_named_and_the_job_goes_on(
    root: Path, tmp_path: Path, small_disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk(256)
    with monkeypatch.context() as patch:
        patch.setenv("TMPDIR", str(disk))
        own = pool.running(interpreter(tmp_path), None, Node())
    task = task_in(tmp_path / "cell", "#" * (1 << 19))
    with pytest.raises(rlnb.WorkerError, match=r"No space left on device.*set TMPDIR") as raised:
        own.request(requests.Card(task=task))
    assert str(raised.value).startswith(f"The node {socket.gethostname()} could not serve the warm simulator: ")
    assert own.job is not None
    again = pool.running(own.python, None, own.job.launcher)
    again.request(requests.Ping())
    assert again.job is own.job
    assert "No space left on device" in own.job.folder.log().read_text(), "the exception is in the job's log too"
    pool.shut_down()
    until_gone(own.job.folder.path, WAIT_S)


def test_a_job_that_only_seems_to_be_dead_is_ended_before_another_one_starts(own: SimulatorProcess) -> None:
    assert own.job is not None
    own._agent.kill()  # the connection alone
    with pytest.raises(rlnb.WorkerError, match="does not answer any more"):
        own.request(requests.Ping())
    assert processes(own.job.folder.path)
    again = pool.running(own.python, own.asset_root, own.job.launcher)
    assert again.job is not own.job
    assert until_gone(own.job.folder.path, WAIT_S) < LINGER_S
    again.request(requests.Ping())


def test_a_node_that_is_lost_between_requests_is_named(own: SimulatorProcess, caplog: pytest.LogCaptureFixture) -> None:
    assert own.job is not None
    for process in processes(own.job.folder.path):
        process.kill()
    deadline = time.monotonic() + 10.0
    while "does not answer any more" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "The next request starts another one." in caplog.text


def test_an_interrupt_reaches_the_node(own: SimulatorProcess) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(1.0, signal.raise_signal, (signal.SIGINT,)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            own.request(requests.Card(task=rlnb.Task(id="endless")))
    finally:
        signal.signal(signal.SIGINT, before)
    own.settle()
    assert own.alive
    own.request(requests.Ping())


def test_an_interrupt_within_a_task_that_is_sent_ends_the_connection_alone(
    own: SimulatorProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert own.job is not None
    task = task_in(tmp_path / "cell", "#" * (1 << 20))
    own._agent.send_signal(signal.SIGSTOP)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            own.request(requests.Card(task=task))
    finally:
        signal.signal(signal.SIGINT, before)
    own._agent.wait(10)
    again = pool.running(own.python, own.asset_root, own.job.launcher)
    assert len(again.request(requests.Card(task=task)).task) == 1 << 20
    assert again.job is own.job
    assert "does not answer" not in caplog.text


def test_closing_ends_the_job_at_once(own: SimulatorProcess) -> None:
    assert own.job is not None
    handle = Simulator(own.python, own.asset_root, own.job.launcher)
    assert handle.state == "idle"
    assert handle.job == f"local on {socket.gethostname()}"
    assert f"Simulator(idle, local on {socket.gethostname()}, pid " in repr(handle)
    handle.close()
    assert until_gone(own.job.folder.path, WAIT_S) < 15.0
    assert handle.state == "none"
    assert not own.job.folder.key.exists()


def test_an_idle_job_ends_and_says_why(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rlnb.options, "warm_idle_s", 3.0)
    process = pool.running(interpreter(tmp_path), None, Node())
    process.request(requests.Ping())
    assert process.job is not None
    until_gone(process.job.folder.path, WAIT_S)
    process._agent.wait(10)
    time.sleep(1.0)
    assert "The warm simulator was not used for 3 s, so it gave its node back." in caplog.text
    pool.shut_down()


def test_the_end_of_the_walltime_is_announced(root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    process = pool.running(interpreter(tmp_path), None, Node(walltime_s=ANNOUNCED_S))
    process.request(requests.Ping())
    assert process.job is not None
    deadline = time.monotonic() + 10.0
    while "with the walltime of its job." not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert " until " in str(process.job)
    pool.shut_down()
    until_gone(process.job.folder.path, WAIT_S)


def test_the_end_of_the_walltime_is_named_however_far_the_job_has_come(root: Path, tmp_path: Path) -> None:
    process = pool.running(interpreter(tmp_path), None, Node(walltime_s=4.0))
    assert process.job is not None
    deadline = time.monotonic() + WAIT_S
    while not process.job.folder.result.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with pytest.raises(rlnb.WorkerError, match="has ended: stopped after its walltime of 4 s"):
        process.request(requests.Ping())
    pool.shut_down()


@pytest.mark.slow
def test_nothing_is_left_a_minute_after_the_kernel_was_killed(root: Path, tmp_path: Path) -> None:
    job_dir = killed_kernels_job("Node()", interpreter(tmp_path), root)
    assert until_gone(job_dir, 60.0) < 60.0
