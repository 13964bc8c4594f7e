"""The queues of this machine, as their own commands print them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

import rlnb
from rlnb.launchers import QueueTable
from rlnb.plugin import ENDED
from rlnb_jupyterlab.choices import LauncherChoice
from rlnb_jupyterlab.open_pages import Link

WITHIN_S = 4.0
"""Commands of queues retry for minutes if their controller is away; the page must be answered within 5 s."""
MOST_ROWS = 500
WHOLE_LINES = ("output",)
"""Heading of the only column of a table that shows whole lines of a command's output."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of a queue's jobs or nodes; the names of the fields are those of ``ts/server/protocol.ts``."""

    launcher: str
    title: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    error: str = ""
    detail: str = ""
    """The output that belongs to the error."""


async def queues(launchers: Sequence[LauncherChoice]) -> list[Table]:
    """Return the tables of each launcher whose command is installed; of launchers with one command, the first's."""
    by_program: dict[str, LauncherChoice] = {}
    for launcher in launchers:
        if launcher.tables:
            by_program.setdefault(launcher.tables[0].argv[0], launcher)
    installed = [launcher for program, launcher in by_program.items() if shutil.which(program)]
    return [table for tables in await asyncio.gather(*map(_tables, installed)) for table in tables]


async def _tables(launcher: LauncherChoice) -> list[Table]:
    """Return the tables of a launcher, or one table with an error if its cluster does not answer the first command."""
    tables = await asyncio.gather(*[_table(launcher.name, table) for table in launcher.tables])
    if tables[0].error and len(tables) > 1:
        error = f"{launcher.tables[0].argv[0]} is installed, but no cluster answers."
        return [Table(launcher=launcher.name, error=error, detail=tables[0].detail)]
    return tables


def simulators(places: Sequence[Any]) -> list[Table]:
    """Return a table of the warm simulators in jobs, or no table if there are none."""
    rows = [
        (
            str(one.kernel.pid),
            one.state,
            one.place,
            "" if one.left_s is None else f"{one.left_s / 60:.0f} min",
            "%rlnb simulator close",
        )
        for one in places
    ]
    columns = ("kernel", "state", "place", "walltime left", "to give it back")
    return [Table(launcher="", title="warm simulators", columns=columns, rows=rows)] if rows else []


def dashboards(runs: Sequence[rlnb.Run]) -> list[Link]:
    """Return a link to Dask's dashboard for each run that has one on this machine."""
    links = []
    for run in runs:
        with contextlib.suppress(rlnb.RlnbError):  # a damaged record
            job = run.record.training
            if job is None or job.state() in ENDED:
                continue
            port = job.submission.dashboard
            if isinstance(port, int) and _listens(job.handle or {}, port):
                links.append(Link(title=f"Dask for {run.id}", url=f"proxy/{port}/status"))
    return links


def _listens(handle: Mapping[str, object], port: int) -> bool:
    """Return whether a run's own process, of this user and on this machine, listens on a port.

    A record can name any port, also one where another user's process waits for this user's session.
    """
    pid = handle.get("pid")
    if handle.get("host") != socket.gethostname() or not isinstance(pid, int):
        return False
    with contextlib.suppress(psutil.Error, ValueError, OverflowError):
        host = psutil.Process(pid)
        for process in (host, *host.children(recursive=True)):
            if process.uids().real == os.getuid() and any(
                connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
                for connection in _connections(process)
            ):
                return True
    return False


def _connections(process: psutil.Process) -> Sequence[Any]:
    """Return the TCP connections of a process. psutil 6 has renamed the method."""
    connections = getattr(process, "net_connections", None) or process.connections
    return connections("tcp")  # type: ignore[no-any-return]


async def _table(launcher: str, table: QueueTable) -> Table:
    """Return a table with the output of its command, or with the command's error."""

    def filled(rows: Sequence[Sequence[str]] = (), error: str = "", detail: str = "") -> Table:
        columns = table.columns or WHOLE_LINES
        return Table(launcher=launcher, title=table.title, columns=columns, rows=rows, error=error, detail=detail)

    program, process = table.argv[0], None
    try:
        process = await asyncio.create_subprocess_exec(
            *table.argv,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            stdin=asyncio.subprocess.DEVNULL,
        )
        output, errors = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except (OSError, TimeoutError) as exc:
        why = str(exc) or f"no output within {WITHIN_S:.0f} s"
        return filled(error=f"{program} does not answer: {why}", detail=why)
    finally:
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return filled(error=f"{program} failed", detail=errors.decode(errors="replace").strip())
    lines = output.decode(errors="replace").splitlines()[:MOST_ROWS]
    width = len(table.columns)
    return filled([line.split("|", width - 1) if width > 1 else [line] for line in lines])
