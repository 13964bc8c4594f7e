"""Connections to a port of this machine, each passed through the standard streams of a process of its own."""

from __future__ import annotations

import socket
import sys

import pytest

from rlnb.simulation.forward import Forward

ECHO = "import os\nwhile data := os.read(0, 1 << 16): os.write(1, data.upper())"


def test_each_connection_has_a_process_and_the_end_of_either_side_is_passed_on() -> None:
    forward = Forward([sys.executable, "-c", ECHO])
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
