"""``python -m rlnb.simulation.relay JOB_DIR``: the connection to a living simulator in a job, as standard streams.

The process waits for the job to start, connects to it with the job's key, and passes bytes on until either side ends.
With ``--port`` it connects to a port of the job's node, and with ``--hold`` it only keeps the job alive. It runs where
the job's folder is, which may be another machine than the kernel's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.launch import tls
from rlnb.records.layout import JobDir
from rlnb.spec import Json
from rlnb.storage import files
from rlnb.version import __version__

POLL_S = 0.2
TELL_S = 3.0
"""Seconds between two messages about a job that waits."""
CONNECT_S = 3.0
"""Seconds that one address of the node has to answer."""
UNREACHED_S = 15.0
"""Seconds after which a node that does not answer at any address is given up."""


def tell(message: Mapping[str, Json]) -> None:
    """Write a message for the kernel."""
    os.write(1, json.dumps(message).encode() + b"\n")


async def connection(job: JobDir) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Wait for a job to start, and connect to it; return None if it has ended."""
    told_s, failed_s, error = 0.0, 0.0, ""
    while True:
        if files.there(job.result):
            return None
        if (address := files.read_json(job.address)) is not None:
            for host in address["hosts"]:  # type: ignore[union-attr]
                try:
                    return await asyncio.wait_for(_connect(job, str(host), int(address["port"])), CONNECT_S)  # type: ignore[arg-type]
                except (OSError, ssl.SSLError, TimeoutError) as exc:
                    error = f"{host}:{address['port']}: {exc or 'no answer'}"
            failed_s = failed_s or time.monotonic()
            if time.monotonic() - failed_s > UNREACHED_S:
                tell({"hangs": f"The living simulator cannot be reached at {error}. Check the firewall of the node."})
                return None
        if time.monotonic() - told_s > TELL_S:
            told_s = time.monotonic()
            tell({"waits": _waits(job)})
        await asyncio.sleep(POLL_S)


async def _connect(job: JobDir, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    settings = tls.context(job.key, server=False)
    reader, writer = await asyncio.open_connection(host, port, ssl=settings, server_hostname="")
    tls.watch(writer.get_extra_info("socket"))
    return reader, writer


def _waits(job: JobDir) -> str:
    """Return why a job waits, as its launcher knows it."""
    return str((files.read_json(job.waits) or {}).get("what", "") or "the job starts")


async def relay(job: JobDir, hello: Mapping[str, Json]) -> None:
    """Connect to a job, and pass bytes between it and the standard streams until either ends."""
    streams = await connection(job)
    if streams is None:
        return
    reader, writer = streams
    writer.write(json.dumps(hello).encode() + b"\n")
    loop = asyncio.get_running_loop()
    kernel = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(kernel), sys.stdin)
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
            while data:  # in a thread: a kernel that sends a large file reads only afterwards
                data = data[await asyncio.to_thread(os.write, 1, data) :]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="rlnb.simulation.relay")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--gently", action="store_true")
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args(argv)
    hello: dict[str, Json] = {"rlnb": __version__, "gently": args.gently}
    if args.port is not None or args.hold:
        hello = {"hold": True} if args.hold else {"port": args.port}
    asyncio.run(relay(JobDir(args.folder), hello))
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status)  # a read of the standard input may still be under way
