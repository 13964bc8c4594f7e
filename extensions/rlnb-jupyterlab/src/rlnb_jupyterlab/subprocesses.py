"""Processes of rlnb that the server starts: what takes long, or acts on a run, is never done in the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 64 * 1024
"""Of what a process prints, from its end."""
PIECE = 1 << 16


async def start(argv: Sequence[str], root: Path, *, complaints: bool = True) -> asyncio.subprocess.Process:
    """Start a module of Python for a root, with pipes, apart from the server's own terminal.

    Args:
        argv: The module and its arguments.
        root: What RLNB_ROOT is there.
        complaints: Whether what it says on standard error comes among its output.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if complaints else None,
        env={**os.environ, "RLNB_ROOT": str(root), "NO_COLOR": "1", "COLUMNS": "200"},
        start_new_session=True,
    )


async def output(
    argv: Sequence[str], root: Path, *, given: bytes = b"", within_s: float, most: int = MOST_BYTES
) -> tuple[int, str]:
    """Run a module to its end; return its status and the end of what it printed; its complaints go to the server's.

    Args:
        argv: The module and its arguments.
        root: What RLNB_ROOT is there.
        given: What it reads.
        within_s: Seconds that it has.
        most: Bytes of what it prints that are returned.

    Raises:
        TimeoutError: It took longer; it is killed.
    """
    process = await start(argv, root, complaints=False)
    try:
        return await asyncio.wait_for(end_of(process, given, most), within_s)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def end_of(process: asyncio.subprocess.Process, given: bytes = b"", most: int = MOST_BYTES) -> tuple[int, str]:
    """Wait for a process; return its status and the end of what it printed, of which no more is held."""
    assert process.stdout is not None
    giving = asyncio.create_task(_give(process, given))  # it may print before it reads, or never read
    printed = bytearray()
    try:
        while content := await process.stdout.read(PIECE):
            printed += content
            del printed[:-most]
        return await process.wait(), printed.decode(errors="replace")
    finally:
        giving.cancel()


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(given)
        await process.stdin.drain()
        process.stdin.close()
