"""The addresses of a node. The server itself is tested with its client, in ``tests/simulation/test_in_jobs.py``."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from rlnb.node.remote_job import SimulatorJobServer, addresses, whole_line
from rlnb.node.supervisor import ENDS
from rlnb.protocol import tls
from rlnb.protocol.tls import write_key
from rlnb.records.layout import JobDir
from rlnb.storage import files


def test_the_name_of_the_machine_comes_first_and_loopback_serves_this_machine_only() -> None:
    assert addresses(loopback=True) == ["127.0.0.1"]
    found = addresses(loopback=False)
    assert found[0] == socket.gethostname()
    assert not [address for address in found if address.startswith("127.")]


def test_a_line_may_be_longer_than_the_buffer_of_its_reader() -> None:
    async def lines() -> list[bytes]:
        reader = asyncio.StreamReader(limit=10)
        reader.feed_data(b"x" * 95 + b"\nshort\n\nno end" + b"y" * 20)
        reader.feed_eof()
        return [await whole_line(reader) for _ in range(5)]

    assert asyncio.run(lines()) == [b"x" * 95 + b"\n", b"short\n", b"\n", b"no end" + b"y" * 20, b""]


def test_a_sender_waits_while_its_data_is_not_read_and_the_first_line_is_short(tmp_path: Path) -> None:
    """The process at the other end of a connection, which may be another program, fills no memory."""
    write_key(JobDir(tmp_path).key)
    context = tls.context(JobDir(tmp_path).key, server=False)

    def send(port: int) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            context.wrap_socket(plain) as connection,
        ):
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * (1 << 22))
            with contextlib.suppress(OSError):
                return connection.recv(10)
        return b""

    async def run() -> None:
        job = SimulatorJobServer(JobDir(tmp_path), ["python"], math.inf, loopback=True)
        serving = asyncio.create_task(job.run())
        while not JobDir(tmp_path).address.exists():
            await asyncio.sleep(0.05)
        port = json.loads(JobDir(tmp_path).address.read_text())["port"]
        with pytest.raises(ConnectionRefusedError):  # at another address of this machine
            socket.create_connection(("127.0.0.2", port), timeout=20)
        assert await asyncio.wait_for(asyncio.to_thread(send, port), 15.0) == b"", "the job closes the connection"
        job._stop()
        await serving

    asyncio.run(run())


def test_a_job_goes_on_while_a_request_has_no_answer_or_its_kernel_lives(tmp_path: Path) -> None:
    job = SimulatorJobServer(JobDir(tmp_path), ["python"], 600.0, loopback=True)
    writer: Any = "of the simulator"
    for calls, idle in ({1}, False), (set[int](), True):
        job._calls[writer] = calls
        job._used_s = time.monotonic() - 601.0
        assert job._reason().startswith("The warm simulator was not used for 600 s") is idle
    job = SimulatorJobServer(JobDir(tmp_path), ["python"], math.inf, loopback=True)
    for holds, gone in (1, False), (0, True):
        job._holds, job._leave_s = holds, time.monotonic() - 1.0
        assert job._reason() == ("The kernel of the warm simulator is gone." if gone else "")


def test_the_cluster_knows_the_end_of_a_job_better_than_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = SimulatorJobServer(JobDir(tmp_path), ["python"], math.inf, loopback=True)
    assert job.ends_s() is None
    monkeypatch.setenv(ENDS, "100.5")
    assert job.ends_s() == 100.5
    files.replace_json(JobDir(tmp_path).deadline, {"time_s": 90.0})
    assert job.ends_s() == 90.0
    JobDir(tmp_path).deadline.write_text("damaged")
    assert job.ends_s() == 90.0, "the last time that was told"


def test_a_simulator_that_cannot_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*argv: str, **options: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    job = SimulatorJobServer(JobDir(tmp_path), ["python"], math.inf, loopback=True)
    absent: Any = None
    with pytest.raises(BlockingIOError):
        asyncio.run(job._simulate(absent, absent))
    assert not [*tmp_path.iterdir()]
