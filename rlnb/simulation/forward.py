"""Ports of this machine that lead to ports of a job's node, through the encrypted channel of the job."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence

from rlnb.display.own_user import is_own, lists_users
from rlnb.storage.lines import BEGIN, skip

MOST = 32
"""Most connections at a time. Each has a process of its own. Further connections wait."""


class Forward:
    """A port of this machine that stands for a port of another one. Other users of this machine are refused.

    Args:
        argv: Command of a relay, whose standard streams are a new connection to the other port. It is started for each
            connection.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv, self._checks_users = argv, lists_users()
        self._free = threading.Semaphore(MOST)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        """Port on this machine's loopback interface."""
        threading.Thread(target=self._accept, daemon=True, name="forward").start()

    def _accept(self) -> None:
        while True:
            self._free.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            try:
                if self._checks_users and not is_own(connection):
                    raise PermissionError("another user")
                self._connect(connection)
            except OSError:  # of this connection alone, such as too many processes
                connection.close()
                self._free.release()

    def _connect(self, connection: socket.socket) -> None:
        relay = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert relay.stdin is not None
        assert relay.stdout is not None
        into, out = relay.stdin, relay.stdout

        def up() -> None:
            _pass_on(connection.recv, lambda data: _write(into.fileno(), data))
            with contextlib.suppress(OSError):
                into.close()

        def down() -> None:
            skip(out.fileno(), BEGIN)
            _pass_on(lambda size: os.read(out.fileno(), size), connection.sendall)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            relay.wait()
            connection.close()
            self._free.release()

        for way in (up, down):
            threading.Thread(target=way, daemon=True, name="forward").start()

    def close(self) -> None:
        """Accept no further connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _pass_on(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := read(1 << 16):
            write(data)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
