"""Tests of rlnb.testing.trackers; most of it consists of tests that trackers run."""

from __future__ import annotations

import socket
import subprocess
import sys

from rlnb.testing.trackers import _own_ports

CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); input()"


def test_connections_of_this_process_are_told_from_those_of_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as own:
            assert own.getsockname()[1] in _own_ports()
            server.accept()[0].close()
        other = subprocess.Popen([sys.executable, "-c", CONNECT, str(port)], stdin=subprocess.PIPE)
        try:
            connection, (_, foreign) = server.accept()
            connection.close()
            assert foreign not in _own_ports()
        finally:
            other.communicate()
