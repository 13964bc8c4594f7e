"""The process of a job: its environment, its start, the wait for it, and a description of its end. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rlnb.launch.command import BY_RLNB, SAFE_PATH, ranks_of, runs_rlnb, runs_worker
from rlnb.machine import threads
from rlnb.spec import Command
from rlnb.storage import entries, files, temporary

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


# -- environment -----------------------------------------------------------------------------------------------------
# The environment is the agent's own, without the variables of jobs and sessions around it. Its folder for temporary
# files is this user's own.


PLACE = frozenset(
    {
        *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
        *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"),
        *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"),
        *("JAX_RANK", "JAX_LOCAL_RANK", "JAX_WORLD_SIZE", "JAX_COORDINATOR_ADDR", "JAX_COORDINATOR_PORT"),
    }
)
"""Variables that give a process its place among several, as torchrun and the operators of pods set them.

A notebook in a pod has those of the pod. A worker would take them for its own, and wait for ranks that never come. The
ranks of a run get theirs from torchrun.
"""
TORCHRUN_OPTIONS = "PET_"
"""Prefix of the variables that set torchrun's options. Kubeflow's operators set them in their pods."""
SESSION = frozenset({"LIVESTREAM", "XR", "HEADLESS"})
"""Variables of a user's session with Isaac Sim. Two workers that stream would both need port 49100."""


def environment(argv: Sequence[str], variables: Mapping[str, str], *, at_once: int = 1) -> dict[str, str]:
    """Return the environment of a process.

    Args:
        argv: Command of the process. A user's script keeps the variables of ``SESSION``, which it may read itself.
        variables: Variables of the command, which take precedence.
        at_once: Jobs that may run on this machine at the same time.
    """
    foreign = PLACE | SESSION if runs_worker(argv) else PLACE
    own = (name for name in os.environ if name not in foreign and not name.startswith(TORCHRUN_OPTIONS))
    kept = {name: os.environ[name] for name in own}
    if runs_rlnb(argv) and not kept.get(SAFE_PATH):
        kept[SAFE_PATH] = BY_RLNB
    merged = {**kept, **temporary.variables(), **variables}
    waits = {} if runs_worker(argv) else threads.short_waits(merged)  # a worker sees to its own
    return {**merged, **waits, **threads.variables(merged, ranks=ranks_of(argv), at_once=at_once)}


# -- torchrun's summary ----------------------------------------------------------------------------------------------


_FAILURE = re.compile(r"time\s+: (\S+)\s*\n.*\n\s*rank\s+: (\d+).*\n\s*exitcode\s+: (-?\d+) ")
"""A rank in the summary; a negative exit code is a signal (``torch.distributed.elastic.multiprocessing.errors``)."""
_TORCHRUN_LINES = 1000
"""Lines to search for the summary, which has 7 lines per rank of a node."""
_AT_ONCE_S = 5.0
"""Seconds around the root cause within which a SIGKILL is not torchrun's own, which it sends only after 30 s."""


def killed_rank(log: Path) -> tuple[int, int] | None:
    """Return the rank that was killed and the signal, from the summary in a node's log; None if no rank was killed.

    The summary lists the other failures before the root cause. If two ranks fail at the same moment, its root cause may
    be the rank that merely lost its peer. Ranks that torchrun itself ended have SIGTERM, or SIGKILL later.
    """
    others, _, root = files.tail(log, _TORCHRUN_LINES, limit_bytes=_TORCHRUN_LINES * 200).rpartition("Root Cause")
    causes = [_failure(match) for match in _FAILURE.finditer(root)]
    if not causes:
        return None
    cause = causes[0]
    failures = [cause, *(_failure(match) for match in _FAILURE.finditer(others))]
    victims = [
        (rank, number)
        for time_s, rank, number in failures
        if number > 0 and number != signal.SIGTERM and abs(time_s - cause[0]) <= _AT_ONCE_S
    ]
    if not victims and cause[2] > 0:
        return cause[1], cause[2]
    return next((failure for failure in victims if failure[1] == signal.SIGKILL), victims[0] if victims else None)


def _failure(match: re.Match[str]) -> tuple[float, int, int]:
    """Return the time in seconds, the rank, and the signal; a negative signal is an exit status."""
    return datetime.strptime(match[1], "%Y-%m-%d_%H:%M:%S").timestamp(), int(match[2]), -int(match[3])


# -- NCCL's watchdog -------------------------------------------------------------------------------------------------


_REASON = re.compile(
    r"(?:watchdog thread terminated with exception: |(?=ProcessGroupNCCL's watchdog got stuck for ))(.+)"
)
"""Torch's last message of the watchdog, or of the monitor of a watchdog that is stuck (``ProcessGroupNCCL.cpp``)."""
_NCCL_LINES = 2000
"""Lines to search. Each rank of the node writes a stack of C++ after the message."""


def abort_reason(log: Path) -> str:
    """Return why the first rank that NCCL's watchdog aborted was aborted; an empty string without such a rank."""
    match = _REASON.search(files.tail(log, _NCCL_LINES, limit_bytes=_NCCL_LINES * 200))
    return match[1].strip() if match else ""
