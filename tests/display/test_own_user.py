"""Servers on loopback accept their own user alone."""

from __future__ import annotations

import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from other_user import OTHER_UID, answer, as_root

import rlnb
from rlnb.display import own_user


@pytest.fixture(params=["127.0.0.1", "::1", "::"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, int, list[str]]]:
    """A server in this process, that process's own user check, and what it has received."""
    before, received = socket.socket.accept, []
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    both = request.param == "::"  # a server of IPv6 that IPv4 reaches too
    listening = socket.create_server((request.param, 0), family=family, dualstack_ipv6=both)

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            received.append(connection.recv(100).decode())
            connection.sendall(b"HTTP")
            connection.close()

    own_user.refuse_other_users()
    once = socket.socket.accept
    own_user.refuse_other_users()
    assert socket.socket.accept is once
    threading.Thread(target=serve, daemon=True).start()
    yield "127.0.0.1" if both else request.param, listening.getsockname()[1], received
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    socket.socket.accept = before


@as_root
def test_a_server_answers_its_own_user_and_no_other(server: tuple[str, int, list[str]]) -> None:
    host, port, received = server
    assert answer(port, 0, host) == "HTTP"
    assert answer(port, OTHER_UID, host) == ""
    assert answer(port, 0, host) == "HTTP"
    assert len(received) == 2


@as_root
def test_a_request_whose_sender_has_left_is_not_read(server: tuple[str, int, list[str]]) -> None:
    """The kernel does not tell the user of a connection that its process has closed."""
    host, port, received = server
    for _ in range(20):
        answer(port, OTHER_UID, host, then="leave")
    assert answer(port, 0, host) == "HTTP"
    assert len(received) == 1


def test_where_the_kernel_lists_no_users_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_user, "_users", lambda ends: iter(()))
    before = socket.socket.accept
    own_user.refuse_other_users()
    assert socket.socket.accept is before


def test_a_connection_that_is_not_over_loopback_is_accepted() -> None:
    here, there = socket.socketpair()
    assert own_user.is_own(here)
    for each in (here, there):
        each.close()


@pytest.mark.slow
@as_root
def test_tensorboard_answers_its_own_user_and_no_other(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3, warm=False).wait(60)
    board = run.tensorboard()
    with urllib.request.urlopen(board.url, timeout=30) as page:
        assert page.status == 200
    assert answer(board.port, OTHER_UID) == ""
    board.close()
