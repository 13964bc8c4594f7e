"""Start the process of a job, wait for it, and describe its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.node.child import abort_reason, describe_exit, killed_rank, spawn, wakes
from rlnb.spec import Command

WAIT_S = 20.0


def python(code: str, **fields: object) -> Command:
    return Command(argv=(sys.executable, "-c", code), **fields)  # type: ignore[arg-type]


def living(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_command_gets_its_environment_and_folder_and_logs_both_outputs(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['A'], os.getcwd(), flush=True); sys.exit('an error')"
    log = tmp_path / "log"
    log.write_text("earlier\n")
    child = spawn(python(code, env={"A": "b"}, cwd=str(tmp_path)), log)
    assert child.wait(WAIT_S) == 1
    assert log.read_text() == f"earlier\nb {tmp_path}\nan error\n"


def test_a_log_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        spawn(python("print()"), tmp_path / "log")
    assert not (tmp_path / "elsewhere").exists()


def test_the_stdin_of_a_command_is_empty(tmp_path: Path) -> None:
    assert spawn(python("import sys; sys.exit(len(sys.stdin.read()))"), tmp_path / "log").wait(WAIT_S) == 0


def test_a_child_dies_with_its_agent_even_after_sigkill(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from rlnb.node.child import spawn; from rlnb.spec import Command;"
        f"child = spawn(Command(argv=('sleep', '60')), Path({str(tmp_path / 'log')!r}));"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        child = psutil.Process(int(agent.stdout.readline()))
        agent.kill()
    deadline = time.monotonic() + WAIT_S
    while living(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_end_of_a_child_and_a_signal_cut_the_wait_short() -> None:
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    child = subprocess.Popen(["sleep", "60"])
    try:
        with wakes(child.pid, WAIT_S) as wait:
            start_s = time.monotonic()
            os.kill(os.getpid(), signal.SIGUSR2)
            assert wait() is False
        child.kill()
        with wakes(child.pid, WAIT_S) as wait:
            assert wait() is False
        assert time.monotonic() - start_s < WAIT_S / 2
    finally:
        signal.signal(signal.SIGUSR2, before)
        child.kill()
        child.wait()


def test_a_wait_takes_no_longer_than_its_limit() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        with wakes(child.pid, 0.05) as wait:
            start_s = time.monotonic()
            assert wait() is False
            assert 0.04 < time.monotonic() - start_s < WAIT_S / 2
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (0, "the worker ended with status 0"),
        (3, "the worker ended with status 3"),
        (128 + signal.SIGKILL, "the worker ended with status 137, which stands for SIGKILL (out of memory?)"),
        (256 - signal.SIGKILL, "the worker ended with status 247, which stands for SIGKILL (out of memory?)"),
        (128 + signal.SIGSEGV, "the worker ended with status 139, which stands for SIGSEGV"),
        (255, "the worker ended with status 255"),
        (-signal.SIGKILL, "the worker was killed by SIGKILL (out of memory?)"),
        (-signal.SIGSEGV, "the worker was killed by SIGSEGV"),
    ],
)
def test_an_end_is_described_by_its_status_or_signal(tmp_path: Path, code: int, sentence: str) -> None:
    assert describe_exit(code, tmp_path / "log") == sentence


# -- nccl ------------------------------------------------------------------------------------------------------------


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


# -- torchrun --------------------------------------------------------------------------------------------------------


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
