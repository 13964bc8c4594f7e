"""Servers of other packages that only their own user can reach.

TensorBoard, viser, Optuna's dashboard and Dask's know no passwords, and every user of a machine can connect to its
loopback interface. The kernel knows who does: ``/proc/net/tcp`` (proc(5)) lists the user of each end of a connection.
"""

from __future__ import annotations

import functools
import os
import runpy
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Accept = Callable[[socket.socket], tuple[socket.socket, Any]]
MAPPED = "::ffff:"
"""Beginning of an IPv4 address in a socket of IPv6."""
TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}


def refuse_other_users() -> None:
    """Let no server of this process accept a connection from another user over loopback, except from root.

    The Jupyter server's proxy and tunnels of SSH connect as the user. Where the kernel does not list users (macOS, some
    sandboxes), nothing is refused.
    """
    accept = socket.socket.accept
    if accept.__name__ == _accept_own.__name__ or not lists_users():
        return

    @functools.wraps(_accept_own)
    def accept_own(self: socket.socket) -> tuple[socket.socket, Any]:
        return _accept_own(self, accept)

    socket.socket.accept = accept_own  # type: ignore[method-assign]


def _accept_own(server: socket.socket, accept: Accept) -> tuple[socket.socket, Any]:
    while True:
        connection, address = accept(server)
        if is_own(connection):
            return connection, address
        connection.close()


def lists_users() -> bool:
    """Return whether the kernel tells that a connection of this process to itself is this user's."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        connection, _ = server.accept()
        with connection:
            return is_own(connection)


def is_own(connection: socket.socket) -> bool:
    """Return whether a connection comes from this user or from root, or not over the loopback interface."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host, port = connection.getsockname()[:2]
    if not (host == "::1" or host.removeprefix(MAPPED).startswith("127.")):
        return True
    try:
        ends = connection.getpeername()[:2], (host, port)
    except OSError:  # the other end is gone
        return False
    return any(user in (0, os.getuid()) for user in _users(ends))


def _users(ends: tuple[tuple[str, int], tuple[str, int]]) -> Iterator[int]:
    """Yield the user of the process at the first of two ends, if one holds it open.

    The table of that end is the one of its own socket, which may be of IPv4 where the other one is of IPv6.
    """
    for family, table in TABLES.items():
        try:
            first, second = (_address(family, *end) for end in ends)
            lines = table.read_text().splitlines()
        except OSError:  # an address of the other family, or no Linux
            continue
        for line in lines[1:]:
            _, local, remote, _, _, _, _, user, _, inode = line.split()[:10]
            if (local, remote) == (first, second) and inode != "0":  # a closed end has inode 0, and user 0 too
                yield int(user)


def _address(family: int, host: str, port: int) -> str:
    """Return an address as these tables have it: 32-bit words in the machine's byte order, in hexadecimal.

    Raises:
        OSError: The address is not of this family.
    """
    plain = host.removeprefix(MAPPED)
    packed = socket.inet_pton(family, f"{MAPPED}{plain}" if family == socket.AF_INET6 and "." in plain else plain)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


if __name__ == "__main__":  # python -m rlnb.display.own_user MODULE ARGUMENTS
    refuse_other_users()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
