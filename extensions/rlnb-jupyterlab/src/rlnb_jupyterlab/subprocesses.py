"""Processes of rlnb that the server starts: slow work and all actions on runs happen outside the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 64 * 1024
"""Maximum bytes of a process's output that are kept, from its end."""
PIECE = 1 << 16


async def start(argv: Sequence[str], root: Path, *, complaints: bool = True) -> asyncio.subprocess.Process:
    """Start a Python module for a root, with pipes, in a session without the server's terminal.

    Args:
        argv: The module and its arguments.
        root: RLNB_ROOT of the process.
        complaints: Whether standard error is part of the output.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
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
    """Run a module to its end; return its status and the end of its output. It shares the server's standard error.

    Args:
        argv: The module and its arguments.
        root: RLNB_ROOT of the process.
        stdin: Input of the process.
        within_s: Time limit in seconds.
        most: Maximum bytes of the output that are returned.

    Raises:
        TimeoutError: The process took longer than ``within_s`` and was killed.
    """
    process = await start(argv, root, complaints=False)
    try:
        return await asyncio.wait_for(end_of(process, stdin, most), within_s)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def end_of(process: asyncio.subprocess.Process, stdin: bytes = b"", most: int = MOST_BYTES) -> tuple[int, str]:
    """Wait for a process; return its status and the end of its output, the only part that is held in memory."""
    assert process.stdout is not None
    giving = asyncio.create_task(_give(process, stdin))  # the process may print before it reads, or never read
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
