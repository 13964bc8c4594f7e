"""Finding the killed rank in the summary that torchrun prints when it exits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from rlnb.node.child import killed_rank

SUMMARY = """
============================================================
rlnb.worker FAILED
------------------------------------------------------------
Failures:
{others}
------------------------------------------------------------
Root Cause (first observed failure):
{root}
============================================================
"""


def rank(number: int, exit_code: int, at_s: int = 0) -> str:
    """Return the entry of a rank as torch.distributed.elastic prints it."""
    return (
        f"[{number}]:\n  time      : 2026-11-23_12:00:{at_s:02}\n  host      : node-a\n"
        f"  rank      : {number} (local_rank: {number})\n  exitcode  : {exit_code} (pid: {4000 + number})\n"
        "  error_file: <N/A>\n  traceback : Signal received"
    )


@pytest.mark.parametrize(
    ("others", "root", "expected"),
    [
        ([(0, -15)], (1, -9), (1, 9)),
        ([(0, -15), (2, -15)], (1, -11), (1, 11)),
        ([(1, -9)], (0, 1), (1, 9)),  # rank 0 failed just as rank 1 was killed
        ([(1, -9)], (0, -15), (1, 9)),
        ([], (3, -15), (3, 15)),
        ([(1, -15)], (0, 1), None),
        ([(1, -9, 31)], (0, 1), None),  # rank 0 raised, and torchrun ended rank 1, which ignored SIGTERM
        ([(1, -9)], (0, -6), (1, 9)),  # NCCL's watchdog aborts a rank that waits for a lost peer
    ],
)
def test_the_killed_rank_is_found_among_those_that_failed_with_it(
    tmp_path: Path, others: list[tuple[int, ...]], root: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    log = tmp_path / "node0.log"
    text = "\n".join(rank(*other) for other in others) or "  <NO_OTHER_FAILURES>"
    log.write_text("iteration 3\n" * 2000 + SUMMARY.format(others=text, root=rank(*root)))
    assert killed_rank(log) == expected


def test_a_log_without_a_summary_has_no_killed_rank(tmp_path: Path) -> None:
    assert killed_rank(tmp_path / "none.log") is None
    (tmp_path / "node0.log").write_text("rank      : 0\n")
    assert killed_rank(tmp_path / "node0.log") is None


@pytest.mark.isaaclab
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed here")
def test_the_summary_of_a_real_torchrun_is_parsed(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text("import os, time\nopen(os.environ['RANK'], 'w').write(str(os.getpid()))\ntime.sleep(100)\n")
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3", str(script)]
    log = tmp_path / "node0.log"
    with log.open("w") as output, subprocess.Popen(argv, cwd=tmp_path, stdout=output, stderr=output) as torchrun:
        deadline = time.monotonic() + 60
        while not all(
            (tmp_path / str(number)).exists() and (tmp_path / str(number)).read_text() for number in range(3)
        ):
            assert time.monotonic() < deadline
            assert psutil.pid_exists(torchrun.pid)
            time.sleep(0.1)
        os.kill(int((tmp_path / "1").read_text()), signal.SIGKILL)
        assert torchrun.wait(60) != 0
    assert killed_rank(log) == (1, 9)
