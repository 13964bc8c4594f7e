"""``python -m rlnb.simulation.relay JOB_DIR``: the connection to a warm simulator in a job, as standard streams.

The process waits for the job to start, connects to it with the job's key, and passes bytes on until either side ends.
With ``--port`` it connects to a port of the job's node. With ``--hold`` it only keeps the job alive, or cancels the job
if the kernel is gone before the job has started. The process runs where the job's folder is, which may be another
machine than the kernel's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from rlnb.display.own_user import is_own, lists_users
from rlnb.protocol import tls
from rlnb.protocol.wire import BEGIN, skip
from rlnb.records.layout import JobDir
from rlnb.spec import Json
from rlnb.storage import files
from rlnb.version import __version__

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
POLL_S = 0.2
MOST_UNSENT = 1 << 30
"""Most bytes of the kernel that are kept until the job takes them, so that a kernel need not wait to send a task."""
TELL_S = 3.0
"""Seconds between two messages about a job that waits."""
CONNECT_S = 3.0
"""Seconds that one address of the node has to answer."""
NEXT_S = 0.25
"""Seconds after which the next address is tried too (RFC 8305)."""
UNREACHED_S = 15.0
"""Seconds after which a node that does not answer at any address is given up."""


def tell(message: Mapping[str, Json]) -> None:
    """Write a message for the kernel."""
    write(json.dumps(message).encode() + b"\n")


def write(data: bytes) -> None:
    """Write all of some bytes to the standard output.

    Behind an SSH server, the standard output may be the same socket as the standard input, which does not block.
    """
    while data:
        select.select([], [1], [])
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(1, data) :]


async def connection(job: JobDir, kernel: asyncio.StreamReader) -> Streams | None:
    """Wait for a job to start, and connect to it; return None if it has ended, or if the kernel's end is closed."""
    told_s, failed_s = 0.0, 0.0
    while True:
        if kernel.at_eof() or files.there(job.result):
            return None
        if (address := files.read_json(job.address)) is not None:
            hosts: Sequence[str] = address["hosts"]  # type: ignore[assignment]
            errors: dict[str, Exception] = {}
            if (streams := await _connect_any(job, hosts, int(address["port"]), errors)) is not None:  # type: ignore[arg-type]
                return streams
            failed_s = failed_s or time.monotonic()
            if time.monotonic() - failed_s > UNREACHED_S:
                tell({"hangs": _unreached(errors)})
                return None
        if time.monotonic() - told_s > TELL_S:
            told_s = time.monotonic()
            tell({"waits": _waits(job)})
        await asyncio.sleep(POLL_S)


async def _connect_any(job: JobDir, hosts: Sequence[str], port: int, errors: dict[str, Exception]) -> Streams | None:
    """Connect to the first address of a node that answers; return None if none does, and note the error of each."""
    tries = {
        asyncio.create_task(_connect(job, host, port, number * NEXT_S)): f"{host}:{port}"
        for number, host in enumerate(hosts)
    }
    waiting, streams = set(tries), None
    while waiting and streams is None:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            try:
                other, streams = streams, await task
            except OSError as exc:
                errors[tries[task]] = exc
            else:
                if other is not None:  # two addresses have answered at the same time
                    other[1].close()
    for task in waiting:
        task.cancel()
    return streams


async def _connect(job: JobDir, host: str, port: int, after_s: float) -> Streams:
    await asyncio.sleep(after_s)
    settings = tls.context(job.key, server=False)
    opening = asyncio.open_connection(host, port, ssl=settings, server_hostname="")
    reader, writer = await asyncio.wait_for(opening, CONNECT_S)
    tls.watch(writer.get_extra_info("socket"))
    return reader, writer


def _unreached(errors: Mapping[str, Exception]) -> str:
    """Return why a node cannot be reached, with the error of each address."""
    texts = [f"{address}: {str(exc).rstrip('.') or 'no answer'}." for address, exc in errors.items()]
    fix = " Check the firewall of the node."
    if any(isinstance(exc, ssl.SSLError) for exc in errors.values()):
        fix = " Another program, which does not have the key of the job, answers there. Start the simulator again."
    elif any(isinstance(exc, PermissionError) for exc in errors.values()):  # of the key, which says its fix itself
        fix = ""
    return f"The warm simulator cannot be reached at {' '.join(texts)}{fix}"


def _waits(job: JobDir) -> str:
    """Return why a job waits, as its launcher knows it."""
    return str((files.read_json(job.waits) or {}).get("what", "") or "the job starts")


async def relay(job: JobDir, hello: Mapping[str, Json]) -> None:
    """Connect to a job, and pass bytes between it and the standard streams until either ends.

    The relay that holds a job also cancels it if the kernel is gone before the job has started.
    """
    loop = asyncio.get_running_loop()
    kernel = asyncio.StreamReader(MOST_UNSENT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(kernel), sys.stdin)
    streams = await connection(job, kernel)
    if streams is None:
        if "hold" in hello and kernel.at_eof():
            files.write_once(job.cancel, {"time": files.now(), "save_s": 0.0})
        return
    reader, writer = streams
    writer.write(json.dumps(hello).encode() + b"\n")
    ways = [asyncio.create_task(_up(kernel, writer)), asyncio.create_task(_down(reader))]
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    writer.transport.abort()


async def _up(kernel: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await kernel.read(1 << 16):
            writer.write(data)
            await writer.drain()


async def _down(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            await asyncio.to_thread(write, data)  # a kernel that sends a large file reads only afterwards


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="rlnb.simulation.relay")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args(argv)
    hello: dict[str, Json] = {"rlnb": __version__}
    if args.port is not None or args.hold:
        hello = {"hold": True} if args.hold else {"port": args.port}
    write(BEGIN)
    asyncio.run(relay(JobDir(args.folder), hello))
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status)  # a read of the standard input may still be under way


# -- forwarded ports -------------------------------------------------------------------------------------------------


MOST_FORWARDED = 32
"""Most connections at a time. Each has a process of its own. Further connections wait."""


class Forward:
    """A port of this machine that stands for a port of another one. Other users of this machine are refused.

    Args:
        argv: Command of a relay, whose standard streams are a new connection to the other port. It is started for each
            connection.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv, self._checks_users = argv, lists_users()
        self._free = threading.Semaphore(MOST_FORWARDED)
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
