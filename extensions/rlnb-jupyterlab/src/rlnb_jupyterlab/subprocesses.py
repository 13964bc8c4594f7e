"""Processes of rlnb that the server starts: long work, and every action on a run, happens outside of the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 64 * 1024
"""Bytes of a process's output, from its end."""
PIECE = 1 << 16


async def start(argv: Sequence[str], root: Path, *, complaints: bool = True) -> asyncio.subprocess.Process:
    """Start a module of Python for a root, with pipes, apart from the server's own terminal.

    Args:
        argv: The module and its arguments.
        root: Its RLNB_ROOT.
        complaints: Whether its standard error is among its output.
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
    argv: Sequence[str], root: Path, *, stdin: bytes = b"", within_s: float, most: int = MOST_BYTES
) -> tuple[int, str]:
    """Run a module to its end; return its status and the end of its output; its complaints go to the server's.

    Args:
        argv: The module and its arguments.
        root: Its RLNB_ROOT.
        stdin: Its input.
        within_s: Seconds that it has.
        most: Bytes of its output that are returned.

    Raises:
        TimeoutError: It took longer, and was killed.
    """
    process = await start(argv, root, complaints=False)
    try:
        return await asyncio.wait_for(end_of(process, stdin, most), within_s)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def end_of(process: asyncio.subprocess.Process, stdin: bytes = b"", most: int = MOST_BYTES) -> tuple[int, str]:
    """Wait for a process; return its status and the end of its output; no more is held in memory."""
    assert process.stdout is not None
    giving = asyncio.create_task(_give(process, stdin))  # it may print before it reads, or never read
    tail = bytearray()
    try:
        while content := await process.stdout.read(PIECE):
            tail += content
            del tail[:-most]
        return await process.wait(), tail.decode(errors="replace")
    finally:
        giving.cancel()


async def _give(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(stdin)
        await process.stdin.drain()
        process.stdin.close()
