"""``python -m rlnb.node --serve JOB_DIR``: a job that keeps warm simulators for a kernel on another machine.

The job listens with TLS, and accepts only processes that have the job's key. Each connection gets a simulator of its
own, which ends with the connection, or a stream to a port of this node, such as that of a 3D view. The job ends when
its kernel is gone, when nothing was requested for a while, or with the walltime of its node.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb.node.descendants import kill_descendants
from rlnb.node.file_transfer import FileTransfer
from rlnb.node.supervisor import ADOPTED_GRACE_S, ENDS
from rlnb.protocol import tls
from rlnb.records.deadline import DeadlineReader
from rlnb.records.layout import JobDir
from rlnb.spec import Json
from rlnb.storage import entries, files
from rlnb.version import __version__

FIRST_S = 45.0
"""Seconds for which the job waits for its kernel first to connect. The kernel may see the address late."""
LINGER_S = 20.0
"""Seconds without a connection after which the kernel counts as gone."""
POLL_S = 1.0
LEAVE_S = 5.0
"""Seconds that the agent of a simulator has to end."""
SIGNAL_S = 1.0
"""Seconds after the end of a worker within which the signal may come that has ended the whole job."""


class SimulatorJobServer:
    """A job that serves warm simulators.

    Args:
        job: Folder of the job, with its key.
        python: Command of the worker's interpreter.
        idle_s: Seconds without a request after which the job ends; infinity means never.
        loopback: Whether only processes of this machine connect.
    """

    def __init__(self, job: JobDir, python: Sequence[str], idle_s: float, *, loopback: bool) -> None:
        self._job, self._python, self._idle_s, self._loopback = job, python, idle_s, loopback
        self._moved = DeadlineReader(job)
        self._connections: set[asyncio.Task[None]] = set()
        self._holds = 0
        """Connections that only show that the kernel lives, so that the end of a worker does not end the job."""
        self._simulators: set[asyncio.StreamWriter] = set()
        self._calls: dict[asyncio.StreamWriter, set[int]] = {}
        """Numbers of the calls of each simulator that have no answer yet."""
        self._adopted: set[asyncio.StreamWriter] = set()
        """Simulators that train, whether or not their kernels are still connected."""
        self._used_s = time.monotonic()
        """Time of the last sign of the kernel, on the monotonic clock."""
        self._stopped = False
        self._leave_s = time.monotonic() + FIRST_S
        """Time at which the job ends if no kernel connects, on the monotonic clock."""

    async def run(self) -> int:
        """Serve until the job has to end; return the exit status."""
        server = await asyncio.start_server(
            self._accept,
            "127.0.0.1" if self._loopback else "0.0.0.0",
            ssl=tls.context(self._job.key, server=True),
            ssl_handshake_timeout=10.0,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        port = server.sockets[0].getsockname()[1]
        files.replace_json(self._job.address, {"hosts": addresses(loopback=self._loopback), "port": port})
        while not self._stopped and not (reason := self._reason()):
            await asyncio.sleep(POLL_S)
        server.close()
        await self._let_trainings_end()
        if not self._stopped:  # otherwise the launcher knows the reason
            print(reason, flush=True)
            for writer in [*self._simulators]:
                _tell(writer, {"hangs": reason})
                with contextlib.suppress(OSError):
                    await writer.drain()
        for connection in [*self._connections]:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        return 0

    def _stop(self) -> None:
        self._stopped = True

    async def _let_trainings_end(self) -> None:
        """Wait for the trainings in adopted simulators, whose agents got the signal that ends this job, and save."""
        deadline = time.monotonic() + ADOPTED_GRACE_S
        while self._adopted and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S / 4)

    def _reason(self) -> str:
        """Return why the job ends now; an empty string if it goes on."""
        now_s = time.monotonic()
        if self._adopted or any(self._calls.values()):
            self._used_s = now_s
        if self._simulators or self._holds:
            self._leave_s = now_s + LINGER_S
        if now_s > self._leave_s:
            return "The kernel of the warm simulator is gone."
        if now_s - self._used_s > self._idle_s:
            return f"The warm simulator was not used for {self._idle_s:.0f} s, so it gave its node back."
        return ""

    def ends_s(self) -> float | None:
        """Return the time at which the job is ended, in seconds since the epoch; None if it has no walltime."""
        if (moved := self._moved.read()) is not None:  # the cluster knows it better
            return moved
        return float(os.environ[ENDS]) if ENDS in os.environ else None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, whose first line says what it wants."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        tls.watch(writer.get_extra_info("socket"))
        try:
            hello = json.loads(await reader.readline())
            if (port := hello.get("port")) is not None:
                await _forward(reader, writer, int(port))
            elif hello.get("hold"):
                await self._hold(reader)
            elif hello.get("rlnb") != __version__:
                _tell(writer, {"hangs": _other_version(str(hello.get("rlnb")))})
            else:
                try:
                    await self._simulate(reader, writer)
                except Exception as exc:  # such as a full disk; the kernel does not see the output of this process
                    _tell(writer, {"hangs": _failure(exc)})
                    raise
        except (OSError, ValueError, asyncio.IncompleteReadError) as exc:
            print(f"A connection ended: {exc!r}", flush=True)
        finally:
            with contextlib.suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        """Note that the kernel lives, until it closes the connection."""
        self._holds += 1
        try:
            await reader.read()
        finally:
            self._holds -= 1
            self._leave_s = time.monotonic() + LINGER_S

    async def _simulate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a warm simulator for a connection, with a folder of its own."""
        folder = Path(tempfile.mkdtemp(prefix="rlnb-simulator-"))  # a shared folder may refuse the agent's named pipe
        try:
            await self._keep(folder, reader, writer)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _keep(self, folder: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep a warm simulator for a connection until either ends."""
        log, transfer = folder / "worker.log", FileTransfer(_made(folder / "files"))
        worker = [*self._python, "-P", "-m", "rlnb.worker", "serve"]
        agent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "rlnb.node", "--warm", str(log), *worker),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._simulators.add(writer)
        self._calls[writer] = set()
        assert agent.stdin is not None
        try:
            times = {"ends_s": self.ends_s(), "now_s": time.time()}
            _tell(writer, {"host": socket.gethostname(), "rlnb": __version__, **times})
            calls = asyncio.create_task(self._calls_of(reader, writer, agent, transfer))
            answers = asyncio.create_task(self._answers_of(writer, agent, transfer))
            done, others = await asyncio.wait({calls, answers}, return_when=asyncio.FIRST_COMPLETED)
            if writer in self._adopted and answers not in done:  # the kernel is gone, and the training goes on
                agent.stdin.close()
                await asyncio.wait({answers})
            if answers in done:
                await asyncio.sleep(SIGNAL_S)
            if answers in done and not self._stopped:  # the kernel sees no file of this machine
                _tell(writer, {"ended": files.tail(log)})
            for task in others:
                task.cancel()
            for end in await asyncio.gather(calls, answers, return_exceptions=True):
                if isinstance(end, Exception):
                    raise end
        finally:
            self._simulators.discard(writer)
            self._adopted.discard(writer)
            del self._calls[writer]
            self._used_s = time.monotonic()
            self._leave_s = self._used_s + LINGER_S
            await _end(agent)

    async def _calls_of(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        agent: asyncio.subprocess.Process,
        transfer: FileTransfer,
    ) -> None:
        """Pass lines of the kernel on to the simulator until either ends."""
        assert agent.stdin is not None
        while line := await whole_line(reader):
            values = json.loads(line)
            if "module" in values:
                transfer.take(values["root"], values["module"], await reader.readexactly(values["bytes"]))
                continue
            if "original" in values:
                transfer.place(values["root"], values["original"])
                continue
            if "payload" in values:
                self._used_s = time.monotonic()
                try:
                    line = json.dumps({**values, "payload": transfer.translate(values["payload"])}).encode() + b"\n"
                except FileNotFoundError as exc:
                    _tell(writer, {"id": values["id"], "error": _not_here(str(exc)), "kind": "RlnbError"})
                    continue
                self._calls[writer].add(values["id"])
            if "adopt" in values:
                line = json.dumps({**values, "hosted": True, "ends_s": self.ends_s()}).encode() + b"\n"
                self._adopted.add(writer)
            with contextlib.suppress(ConnectionError):  # the agent has ended, which its output shows
                agent.stdin.write(line)
                await agent.stdin.drain()

    async def _answers_of(
        self, writer: asyncio.StreamWriter, agent: asyncio.subprocess.Process, transfer: FileTransfer
    ) -> None:
        """Pass lines of the simulator on to the kernel, each after the files that it names, until either ends."""
        assert agent.stdout is not None
        while line := await whole_line(agent.stdout):
            for file in transfer.received(line):
                _tell(writer, {"folder": file.folder, "name": file.name, "bytes": len(file.content)})
                writer.write(file.content)
            values = json.loads(line)
            if "value" in values or "error" in values:
                self._calls[writer].discard(values["id"])
            if "returned" in values:
                self._adopted.discard(writer)
            writer.write(transfer.answer(line))
            await writer.drain()


async def whole_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, which may be longer than the reader's buffer; the rest without an end at the end of input.

    The buffer stays small, so that a sender waits while its data is not read.
    """
    line = bytearray()
    while True:
        try:
            return bytes(line + await reader.readuntil())
        except asyncio.IncompleteReadError as exc:
            return bytes(line + exc.partial)
        except asyncio.LimitOverrunError as exc:
            line += await reader.readexactly(exc.consumed)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Pass bytes to and from a port of this node's loopback interface until one side ends."""
    theirs, ours = await asyncio.open_connection("127.0.0.1", port)
    ways = [asyncio.create_task(pump(reader, ours)), asyncio.create_task(pump(theirs, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        ours.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


async def _end(agent: asyncio.subprocess.Process) -> None:
    assert agent.stdin is not None
    agent.stdin.close()
    try:
        await asyncio.wait_for(agent.wait(), LEAVE_S)
    except TimeoutError:
        agent.kill()
        await agent.wait()


def _tell(writer: asyncio.StreamWriter, message: Mapping[str, Json]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def addresses(*, loopback: bool) -> list[str]:
    """Return the names under which the kernel's machine may reach this one, the likeliest first."""
    import psutil

    if loopback:
        return ["127.0.0.1"]
    names = [
        address.address
        for cards in psutil.net_if_addrs().values()
        for address in cards
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    ]
    return [socket.gethostname(), *names]


def _not_here(folder: str) -> str:
    return (
        f"{socket.gethostname()}, the node of the warm simulator, does not see {folder}. Evaluations, films and "
        "exports of a run need a folder that the node shares. Use a root on such a folder, or a local simulator."
    )


def _failure(exc: Exception) -> str:
    fix = f"Free space in {tempfile.gettempdir()} there, or set TMPDIR. " if isinstance(exc, OSError) else ""
    what = f"The node {socket.gethostname()} could not serve the warm simulator: {type(exc).__name__}: {exc}."
    return f"{what} {fix}The next request starts another one."


def _other_version(theirs: str) -> str:
    return (
        f"The kernel has rlnb {theirs}, and the node {socket.gethostname()} has rlnb {__version__}. Install the same "
        f"version in {sys.executable} on the node."
    )


def serve(argv: Sequence[str]) -> int:
    """Serve warm simulators in a job."""
    parser = argparse.ArgumentParser(prog="rlnb.node --serve")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--idle", type=float, default=math.inf)
    parser.add_argument("--loopback", action="store_true")
    parser.add_argument("python", nargs="+")
    args = parser.parse_args(argv)
    job = JobDir(args.folder)
    try:
        return asyncio.run(SimulatorJobServer(job, args.python, args.idle, loopback=args.loopback).run())
    finally:
        kill_descendants(0.0)
        entries.remove(job.key)
        entries.remove(job.address)
