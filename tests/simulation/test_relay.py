"""The relay waits for a job, and says why, until the job listens or has ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_user import OTHER_UID, answer, as_root

from rlnb.protocol import tls
from rlnb.protocol.tls import write_key
from rlnb.protocol.wire import BEGIN
from rlnb.records.layout import JobDir
from rlnb.simulation import relay as forwards
from rlnb.simulation.relay import Forward
from rlnb.spec import Result
from rlnb.storage import files


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    write_key(JobDir(tmp_path).key)
    return JobDir(tmp_path)


def test_a_job_that_waits_is_reported_until_it_has_ended(job: JobDir) -> None:
    argv = [sys.executable, "-m", "rlnb.simulation.relay", str(job.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == BEGIN
        assert json.loads(relay.stdout.readline()) == {"waits": "the job starts"}
        files.replace_json(job.waits, {"what": "PENDING (Resources)", "since": files.now()})
        deadline = time.monotonic() + 20
        while json.loads(relay.stdout.readline()) != {"waits": "PENDING (Resources)"}:
            assert time.monotonic() < deadline
        files.write_once(job.result, Result(outcome="cancelled", ended=files.now()))
        assert relay.wait(20) == 0


def test_a_kernel_can_send_a_large_task_while_the_job_waits(job: JobDir) -> None:
    argv = [sys.executable, "-m", "rlnb.simulation.relay", str(job.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as relay:
        assert relay.stdin is not None
        stuck = threading.Timer(20.0, relay.kill)
        stuck.start()
        relay.stdin.write(b"x" * (1 << 22))  # a broken pipe if the relay was killed
        relay.stdin.flush()
        stuck.cancel()
        relay.kill()


@pytest.mark.parametrize("role", ["--hold", "--port=1"])
def test_a_pending_job_is_cancelled_with_its_kernel_but_not_with_a_simulator(job: JobDir, role: str) -> None:
    argv = [sys.executable, "-m", "rlnb.simulation.relay", str(job.path), role]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdout.readline()
        assert not job.cancel.exists()
        relay.stdin.close()
        assert relay.wait(20) == 0
    assert job.cancel.exists() == (role == "--hold")


def unreached(job: JobDir, hosts: list[str], port: int) -> str:
    """Return what the relay says in the end about a node that does not answer."""
    files.replace_json(job.address, {"hosts": hosts, "port": port})
    program = "import sys; from rlnb.simulation import relay; relay.UNREACHED_S = 0.5; relay.main(sys.argv[1:])"
    argv = [sys.executable, "-c", program, str(job.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdout is not None
        *_, last = relay.stdout.read().splitlines()
    return str(json.loads(last)["hangs"])


@contextlib.contextmanager
def serving(key: Path, host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Accept connections with a key; yield the port."""
    context = tls.context(key, server=True)
    with socket.create_server((host, port)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = listener.accept()
                    with contextlib.suppress(OSError):
                        kept.append(context.wrap_socket(plain, server_side=True))

        kept: list[ssl.SSLSocket] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(20)
            for connection in kept:
                connection.close()


def test_a_node_that_cannot_be_reached_is_named_with_all_addresses(job: JobDir) -> None:
    said = unreached(job, ["127.0.0.1", "127.0.0.2"], 1)
    assert said.startswith("The warm simulator cannot be reached at 127.0.0.1:1: ")
    assert ". 127.0.0.2:1: " in said
    assert said.endswith("Check the firewall of the node.")


def test_a_program_without_the_key_of_the_job_is_named_and_no_firewall(job: JobDir, tmp_path: Path) -> None:
    write_key(tmp_path / "other.pem")
    with serving(tmp_path / "other.pem") as port:
        said = unreached(job, ["127.0.0.1"], port)
    assert "Another program, which does not have the key of the job, answers there." in said
    assert "firewall" not in said
    job.key.chmod(0o644)
    said = unreached(job, ["127.0.0.1"], port)
    assert "is not a file that only this user can read" in said
    assert "firewall" not in said


CONNECTS = """
import asyncio, sys
from pathlib import Path
from rlnb.protocol import tls
from rlnb.records.layout import JobDir
from rlnb.simulation import relay
relay.CONNECT_S = 600.0
assert asyncio.run(relay.connection(JobDir(Path(sys.argv[1])), asyncio.StreamReader())) is not None
"""


def test_an_address_that_does_not_answer_costs_no_time_if_another_one_does(job: JobDir) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(job.key, "127.0.0.2", silent.getsockname()[1]):
        files.replace_json(job.address, {"hosts": ["127.0.0.1", "127.0.0.2"], "port": silent.getsockname()[1]})
        argv = [sys.executable, "-c", CONNECTS, str(job.path)]
        assert subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0


def test_large_data_passes_through_one_socket_for_both_streams_as_behind_an_ssh_server(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)  # which the reading side of the relay does
    content = os.urandom(1 << 20) * 4
    (tmp_path / "content").write_bytes(content)
    program = (
        "import pathlib, sys; from rlnb.simulation import relay; relay.write(pathlib.Path(sys.argv[1]).read_bytes())"
    )
    argv = [sys.executable, "-c", program, str(tmp_path / "content")]
    with subprocess.Popen(argv, stdin=theirs.fileno(), stdout=theirs.fileno()) as relay:
        theirs.close()
        time.sleep(1.0)  # the socket is full
        got = bytearray()
        while data := ours.recv(1 << 16):
            got += data
        assert relay.wait(20) == 0
    assert bytes(got) == content


# -- forward ---------------------------------------------------------------------------------------------------------


ECHO = """
import os
os.write(1, b"Welcome to node3.\\n" + bytes([0]) + b"rlnb-relay 1\\n")
while data := os.read(0, 1 << 16): os.write(1, data.upper())
"""


def test_each_connection_has_a_process_and_the_end_of_either_side_is_passed_on() -> None:
    forward = Forward([sys.executable, "-c", ECHO])
    assert forward._socket.getsockname()[0] == "127.0.0.1", "no other machine can connect"
    address = ("127.0.0.1", forward.port)
    with socket.create_connection(address, timeout=20) as one, socket.create_connection(address, timeout=20) as two:
        one.sendall(b"one")
        two.sendall(b"two")
        assert (two.recv(10), one.recv(10)) == (b"TWO", b"ONE")
        one.shutdown(socket.SHUT_WR)
        assert one.recv(10) == b"", "the process has ended"
    forward.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address, timeout=20)


@as_root
def test_another_user_of_this_machine_is_refused() -> None:
    forward = Forward([sys.executable, "-c", ECHO])
    assert answer(forward.port, os.getuid()) == "GET"
    assert answer(forward.port, OTHER_UID) == ""
    assert answer(forward.port, os.getuid()) == "GET"
    forward.close()


def test_a_process_that_cannot_start_ends_its_connection_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwards, "MOST_FORWARDED", 1)
    forward = Forward(["/nope"])
    for _ in range(3):
        address = ("127.0.0.1", forward.port)
        with contextlib.suppress(ConnectionResetError), socket.create_connection(address, timeout=20) as browser:
            assert browser.recv(10) == b""
    forward.close()


def test_connections_beyond_the_most_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwards, "MOST_FORWARDED", 1)
    forward = Forward([sys.executable, "-c", ECHO])
    address = ("127.0.0.1", forward.port)
    with socket.create_connection(address, timeout=20) as two, socket.create_connection(address, timeout=20) as three:
        two.sendall(b"two")
        assert two.recv(10) == b"TWO"
        three.sendall(b"three")
        three.settimeout(1.0)
        with pytest.raises(TimeoutError):
            three.recv(10)
        two.close()
        three.settimeout(20)
        assert three.recv(10) == b"THREE"
    forward.close()
