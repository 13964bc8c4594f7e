"""The messages of torch's watchdog for NCCL, which aborts a rank that waits for too long."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import rlnb
from rlnb.node.child import abort_reason, describe_exit

TIMEOUT = (
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1, "
    "NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
)
ABORT = (
    "[rank{rank}]:[E1124 12:00:00.5 ProcessGroupNCCL.cpp:688] "
    + TIMEOUT
    + """
[rank{rank}]:[E1124 12:00:00.6 ProcessGroupNCCL.cpp:747] [Rank {rank}] To avoid data inconsistency, we are taking the \
entire process down.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: """
    + TIMEOUT
    + """
Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:688 (most recent call):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7ff9a0afb969 in libc10.so)
"""
)
"""Output of a rank whose peer is gone, as torch 2.11 writes it."""
STUCK = "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued work."


def test_the_first_abort_in_the_log_is_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_text("iteration 3\n" + ABORT.format(rank=2) + ABORT.format(rank=0))
    assert abort_reason(log) == TIMEOUT.format(rank=2)


def test_a_stuck_watchdog_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"[rank0]:[F1124 ProcessGroupNCCL.cpp:1557] [PG ID 0 Rank 0] {STUCK}\n")
    assert abort_reason(tmp_path / "log") == STUCK


def test_other_logs_have_no_reason(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("NCCL INFO Bootstrap : Using eth0\nFatal Python error: Aborted\n")
    assert abort_reason(tmp_path / "log") == ""
    assert abort_reason(tmp_path / "none") == ""


@pytest.mark.parametrize("code", [-signal.SIGABRT, 128 + signal.SIGABRT])
def test_an_abort_is_described_with_the_reason(tmp_path: Path, code: int) -> None:
    log = tmp_path / "log"
    log.write_text(ABORT.format(rank=1))
    assert describe_exit(code, log).endswith(f"SIGABRT: NCCL gave up: {TIMEOUT.format(rank=1)}")
    assert "NCCL" not in describe_exit(-signal.SIGKILL, log)


def test_a_run_whose_rank_nccl_aborts_fails_with_the_reason(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import os, sys\nsys.stderr.write({ABORT.format(rank=0)!r})\nsys.stderr.flush()\nos.abort()\n")
    run = rlnb.train(script=script)
    with pytest.raises(rlnb.RunError, match=r"killed by SIGABRT: NCCL gave up: .Rank 0. Watchdog caught"):
        run.wait(60)
