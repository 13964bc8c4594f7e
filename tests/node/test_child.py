"""Start the process of a job, wait for it, and describe its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rlnb.node.child import describe_exit, spawn, wakes
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
