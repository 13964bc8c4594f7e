"""The queries of a queue about its jobs, and the words for the end of a job that do not depend on the queue."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Collection, Sequence

logger = logging.getLogger("rlnb_dask")
ANSWER_S = 30
LEFT = "no longer in the queue"
"""State of a job that has ended, and whose end the queue does not report."""
DONE = "done"
STUCK = "stuck"
"""First words of the states of jobs that have ended by themselves, and of jobs that the queue will never start."""
LAUNCH_FAILED = "launch failed"
"""First words of the states of jobs that a node could not start, so that another node may."""
SHELL_SIGNAL = 128
"""Exit statuses above this number stand for the signal that ended a job: 137 is 128 and SIGKILL's 9."""


def run(argv: Sequence[str], script: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a queue's command; bytes of its output that are no text become question marks.

    Args:
        argv: The command.
        script: Its input.

    Raises:
        OSError: The command cannot be started.
        subprocess.TimeoutExpired: The command has not ended in time.
    """
    return subprocess.run(
        argv, input=script, capture_output=True, text=True, errors="replace", timeout=ANSWER_S, check=False
    )


def ask(argv: Sequence[str], *, unless: Collection[str] = ()) -> str | None:
    """Return the output of a queue's command; None if it fails, since the queue may answer later.

    Args:
        argv: The command.
        unless: Texts that its error output has if it fails because the queue no longer knows a job.
    """
    try:
        process = run(argv)
    except (OSError, subprocess.TimeoutExpired) as exc:
        logger.info("the queue does not answer: %s", exc)
        return None
    if process.returncode and not any(text in f"{process.stdout}{process.stderr}" for text in unless):
        logger.info("the queue does not answer: %s", process.stderr.strip() or process.stdout.strip())
        return None
    return process.stdout


def done(status: int) -> str:
    """Return the state of a job that ended with an exit status of its shell, or by a signal."""
    return f"{DONE} (exit status {status})" if status <= SHELL_SIGNAL else killed(status - SHELL_SIGNAL)


def killed(number: int) -> str:
    """Return the state of a job that a signal ended."""
    try:
        return f"killed ({signal.Signals(number).name})"
    except ValueError:
        return f"killed (signal {number})"


def stuck(reason: str) -> str:
    """Return the state of a job that stays in the queue, which will never start it."""
    return f"{STUCK} in the queue ({reason})"


def launch_failed(cause: str) -> str:
    """Return the state of a job that a node could not start.

    Args:
        cause: The node and its reason, such as ``"gpu07: Prolog error"``.
    """
    return f"{LAUNCH_FAILED} ({cause})"


def is_launch_failure(state: str) -> bool:
    """Return whether a node could not start a job."""
    return state.startswith(LAUNCH_FAILED)


def by_itself(state: str) -> bool:
    """Return whether a job failed by itself, or cannot start, so that another one would end in the same way."""
    return state.startswith(STUCK) or (state.startswith(DONE) and state != done(0))
