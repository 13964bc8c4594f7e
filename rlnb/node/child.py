"""The process of a job: start it, wait for it, describe its end. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from rlnb.launch.command import runs_worker
from rlnb.node.environment import environment
from rlnb.node.nccl import abort_reason
from rlnb.spec import Command
from rlnb.storage import entries

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSEGV)
_SIGNALS = {status: number for number in _CRASHES for status in (128 + number, 256 - number)}
"""Signals by the exit status of a wrapper whose child they killed: of a shell, and of Python's subprocess."""
_libc = ctypes.CDLL(None, use_errno=True)


def spawn(command: Command, log: Path) -> subprocess.Popen[bytes]:
    """Start the command with its output in ``log``.

    The stdin of a worker is a pipe that only this process holds open. It reaches the worker through any wrapper, and
    tells it that this process is gone. The stdin of a script is empty.
    """
    with entries.open_to_add(log) as output:
        return subprocess.Popen(
            command.argv,
            env=environment(command.argv, command.env, at_once=command.max_running if command.queued else 1),
            cwd=command.cwd,
            stdin=subprocess.PIPE if runs_worker(command.argv) else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )


def die_with_parent() -> None:
    """Make Linux kill this process when its parent dies, for whatever reason."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of every orphaned descendant, so that none escapes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def wakes(pid: int, poll_s: float, *, lifeline: bool = False) -> Iterator[Callable[[], bool]]:
    """Yield a function that waits for a child's exit, a signal or ``poll_s``, and returns whether stdin has closed.

    Wake-ups are rare, since each takes a core from a training that may use all of them. Standard input is watched only
    with ``lifeline``.
    """
    process = os.pidfd_open(pid)
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    descriptors = [process, reader, *([0] if lifeline else [])]

    def wait() -> bool:
        ready, _, _ = select.select(descriptors, [], [], poll_s)
        return 0 in ready and not os.read(0, 1 << 16)

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(before)
        for end in (process, reader, writer):
            os.close(end)


def describe_exit(code: int, log: Path) -> str:
    """Return a description of how a process ended, from its return code and the log that it wrote to."""
    number = -code if code < 0 else _SIGNALS.get(code)
    if number is None:
        return f"the worker ended with status {code}"
    reason = abort_reason(log) if number == signal.SIGABRT else ""
    hint = f": NCCL gave up: {reason}" if reason else " (out of memory?)" if number == signal.SIGKILL else ""
    way = "was killed by" if code < 0 else f"ended with status {code}, which stands for"
    return f"the worker {way} {signal.Signals(number).name}{hint}"
