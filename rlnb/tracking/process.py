"""The process that follows a run: its entry point, and the end of the run that it reports."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rlnb.run.run import Run
    from rlnb.spec import Outcome

logger = logging.getLogger(__name__)


def main(name: str, track: Callable[[Run], None]) -> NoReturn:
    """Follow the run whose folder is the first argument of the command, then end this process.

    A failure is a warning in the job's log, and exit status 1. It does not reach the training.

    Args:
        name: Name of the tracker in the warning, such as ``"W&B"``.
        track: Function that follows the run and returns at its end. Import the tracker's package inside of it, so
            that a failure of the import is a warning too.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a cancelled run gets SIGTERM, and stdin closes too
    from rlnb.run.find import get_run

    status = 0
    try:
        track(get_run(sys.argv[1]))
    except Exception as exc:
        logger.warning("%s no longer follows this run: %s: %s", name, type(exc).__name__, exc)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # exit handlers may wait for a service that has ended


def outcome(run: Run) -> Outcome:
    """Return how a run's newest training job ended, once stdin has closed.

    A job that was killed has no result yet. It counts as cancelled if the user cancelled it, and as failed otherwise.

    Args:
        run: The run.
    """
    if run.result is not None:
        return run.result.outcome
    training = next(job for job in reversed(run.jobs) if job.kind == "train")
    return "cancelled" if training.folder.cancel.exists() else "failed"
