"""Only a process with the key of a job connects to it, and only the job answers that process."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from rlnb.launch import tls
from rlnb.simulation.key import write_key


def answer(server_key: Path, client_key: Path) -> bytes:
    """Return what a server that echoes answers to a client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            try:
                with tls.context(server_key, server=True).wrap_socket(plain, server_side=True) as connection:
                    connection.sendall(connection.recv(100))
            except OSError:
                plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=20) as plain,
                tls.context(client_key, server=False).wrap_socket(plain) as connection,
            ):
                tls.watch(connection)
                connection.sendall(b"hello")
                return connection.recv(100)
        finally:
            thread.join(20)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two"):
        write_key(tmp_path / name)
    return tmp_path / "one", tmp_path / "two"


def test_two_sides_with_the_same_key_talk(keys: tuple[Path, Path]) -> None:
    assert answer(keys[0], keys[0]) == b"hello"


def test_sides_with_different_keys_do_not(keys: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLError):
        answer(*keys)
