"""The rlnb processes that the server starts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from rlnb_jupyterlab import subprocesses


async def test_only_the_end_of_a_long_output_is_kept(root: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "yes | head -c 3000000; echo end", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    status, printed = await subprocesses.end_of(process, b"unread" * 100_000, most=100)
    assert (status, len(printed)) == (0, 100)
    assert printed.endswith("end\n")


async def test_a_process_that_takes_too_long_is_killed(root: Path) -> None:
    start_s = time.monotonic()
    with pytest.raises(TimeoutError):
        await subprocesses.output(["timeit", "-n", "1", "import time; time.sleep(60)"], root, within_s=0.5)
    assert time.monotonic() - start_s < 20


async def test_a_process_receives_its_input_and_the_root(root: Path) -> None:
    argv = ["timeit", "-n1", "-r1", "import os, sys; print(os.environ['RLNB_ROOT'], sys.stdin.read())"]
    status, text = await subprocesses.output(argv, root, stdin=b"hello", within_s=20.0)
    assert status == 0
    assert f"{root} hello" in text
