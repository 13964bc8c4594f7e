"""Connections to a port of this machine, each passed through the standard streams of a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import sys

import pytest
from other_user import OTHER_UID, answer, as_root

from rlnb.simulation import relay as forwards
from rlnb.simulation.relay import Forward

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
