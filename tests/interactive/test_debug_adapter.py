"""Tests of rlnb.interactive.debug_adapter, with a real debugpy in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.interactive.debug_adapter import Adapter

pytestmark = pytest.mark.skipif(importlib.util.find_spec("debugpy") is None, reason="debugpy is not installed here")
PROGRAM = """
import sys
import debugpy
print(debugpy.listen(("127.0.0.1", 0), in_process_debug_adapter=True)[1], flush=True)

def rewards(x):
    y = x * 2
    z = y + 1
    return z

for line in sys.stdin:
    print(rewards(int(line)), flush=True)
"""
LINE = 7
"""Line of ``y = x * 2``."""
WITHIN_S = 20.0


class Debuggee:
    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.process = subprocess.Popen(
            [sys.executable, self.file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        )
        self.port = int(self.read())

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()


@pytest.fixture
def debuggee(tmp_path: Path) -> Iterator[Debuggee]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    program = Debuggee(file)
    yield program
    program.process.kill()
    program.process.communicate()


def test_a_line_stops_the_code_which_shows_its_variables_and_goes_on(debuggee: Debuggee) -> None:
    adapter = Adapter(debuggee.port)
    assert adapter.set_lines(debuggee.file, {LINE: "x > 3"}) == []
    debuggee.write("3")
    assert debuggee.read() == "7", "the condition is false"
    debuggee.write("4")
    thread = adapter.stops.get(timeout=WITHIN_S)
    frame, caller = adapter.frames(thread)
    assert (frame.name, frame.file, frame.line) == ("rewards", debuggee.file, LINE)
    assert caller.name == "<module>"
    assert adapter.variables(frame.id) == {"x": "4"}
    assert adapter.evaluate(frame.id, "x + 1") == "5"
    with pytest.raises(rlnb.RlnbError, match="name 'unknown' is not defined"):
        adapter.evaluate(frame.id, "unknown")
    adapter.go_on(thread, "next")
    assert adapter.variables(adapter.frames(adapter.stops.get(timeout=WITHIN_S))[0].id) == {"x": "4", "y": "8"}
    adapter.set_lines(debuggee.file, {})
    adapter.go_on(thread, "continue")
    assert debuggee.read() == "9"
    debuggee.write("5")
    assert debuggee.read() == "11"


def test_a_function_stops_the_code_and_the_end_of_the_connection_lets_it_go_on(debuggee: Debuggee) -> None:
    adapter = Adapter(debuggee.port)
    adapter.set_functions(["rewards"])
    debuggee.write("4")
    assert adapter.frames(adapter.stops.get(timeout=WITHIN_S))[0].name == "rewards"
    adapter.close()
    assert debuggee.read() == "9"
    again = Adapter(debuggee.port)
    debuggee.write("5")
    assert debuggee.read() == "11"
    debuggee.process.kill()
    with pytest.raises(rlnb.RlnbError, match=r"the simulator ended|not answer"):
        again.frames(1)


def test_a_port_without_a_debugger_is_an_error() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"does not answer.*Run rlnb\.debug again"):
        Adapter(1)


def test_a_debugger_that_refuses_is_left() -> None:
    """It would take no other connection."""
    ends: list[bytes] = []

    def refuse() -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(WITHIN_S)
            request = connection.recv(1 << 16)
            number = json.loads(request.partition(b"\r\n\r\n")[2])["seq"]
            body = json.dumps({"type": "response", "request_seq": number, "success": False, "message": "no"}).encode()
            connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            ends.append(connection.recv(1))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(rlnb.RlnbError, match="The debugger refuses 'pydevdAuthorize': no"):
            Adapter(server.getsockname()[1], "a token")
        thread.join(WITHIN_S)
    assert ends == [b""]
