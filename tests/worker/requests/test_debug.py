"""Tests of rlnb.worker.requests.debug without a simulator; with one: tests/interactive/test_debugger."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.interactive.debug_adapter import Adapter
from rlnb.worker.requests import debug
from rlnb.worker.requests.debug import array_of

OTHER_USER = 65534
PROGRAM = """
import sys
from rlnb.errors import FreshProcessError
from rlnb.worker.requests import debug
debug.refuse_if_attached()
print(debug.listen().port, debug.listen().port, flush=True)
try:
    debug.refuse_if_attached()
except FreshProcessError as exc:
    print(exc, flush=True)
debug.listen(sys.stdin.readline().strip())
print("token set", flush=True)
sys.stdin.read()
"""
GREETING = b'{"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "test"}}'
CONNECT = f"""
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[2]))
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10)
connection.sendall(b"Content-Length: {len(GREETING)}\\r\\n\\r\\n" + {GREETING!r})
try:
    print("answer" if connection.recv(1) else "closed")
except ConnectionResetError:
    print("closed")
"""


def test_tensors_and_numbers_are_arrays_and_nothing_else_is() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.ones(2, 3, requires_grad=True)
    wrapped: Any = SimpleNamespace(torch=tensor)
    for value in (tensor, wrapped):
        array = array_of(value)
        assert array is not None
        assert array.shape == (2, 3)
    assert array_of(np.arange(3)) is not None
    assert array_of(True) == np.asarray(True)
    assert array_of(2.5) == np.asarray(2.5)
    for value in ("text", None, [1, 2], object(), np.array([object()])):
        assert array_of(value) is None


def test_no_port_is_opened_where_the_users_of_connections_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("debugpy")
    monkeypatch.setattr(debug, "lists_users", lambda: False)
    with pytest.raises(rlnb.RlnbError, match="does not list the users of connections"):
        debug.listen("secret")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield program
        program.kill()


@pytest.mark.skipif(importlib.util.find_spec("debugpy") is None, reason="debugpy is not installed here")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
def test_a_debugger_with_a_token_refuses_one_without_it(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    port = int(process.stdout.readline().split()[0])
    Adapter(port).close()
    assert process.stdin is not None
    process.stdin.write("secret\n")
    process.stdin.flush()
    process.stdout.readline()
    assert process.stdout.readline() == "token set\n"
    for token in ("", "wrong"):
        with pytest.raises(rlnb.RlnbError, match="not authenticated"):
            Adapter(port, token)
    Adapter(port, "secret").close()


@pytest.mark.skipif(importlib.util.find_spec("debugpy") is None, reason="debugpy is not installed here")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_only_the_own_user_can_attach_and_the_process_then_does_nothing_else(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    first, second = process.stdout.readline().split()
    assert first == second, "it listens once"
    assert process.stdout.readline() == "A debugger can attach to this process.\n"
    for user, expected in ((OTHER_USER, "closed\n"), (0, "answer\n")):
        connect = [sys.executable, "-c", CONNECT, first, str(user)]
        done = subprocess.run(connect, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout == expected, done.stderr
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.2", int(first))) != 0, "it listens on one address only"
