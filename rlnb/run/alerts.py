"""The alerts of a training in the notebook that started it: it prints them, and calls the rules that are functions."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlnb.node.alerts import WEBHOOK, send
from rlnb.records.alerts import Alert, write
from rlnb.spec import ENDED
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.run.run import Run

logger = logging.getLogger(__name__)

POLL_S = 2.0
"""Seconds between two looks."""


def follow(run: Run, functions: Sequence[Callable[[Run], str | bool | None]]) -> threading.Thread | None:
    """Print the alerts of a run in this process until the run has ended, in a thread; None if it has no rules.

    Args:
        run: The run.
        functions: Rules that are called here, since only this process has them.
    """
    if not run.manifest.alerts and not functions:
        return None
    reader = run.reread()  # readers are not thread-safe
    thread = threading.Thread(target=_follow, args=(reader, [*functions]), name="rlnb-alerts", daemon=True)
    thread.start()
    return thread


def _follow(run: Run, functions: list[Callable[[Run], str | bool | None]]) -> None:
    count = 0
    while True:
        is_over = run.state in ENDED  # before the last look
        for function in [*functions]:
            if _alerts(run, function):
                functions.remove(function)
        new = run.alerts[count:]
        count += len(new)
        for alert in new:
            print(f"Alert of {run.id}: {alert.what}", flush=True)
        if is_over:
            return
        time.sleep(POLL_S)


def _alerts(run: Run, function: Callable[[Run], str | bool | None]) -> bool:
    """Call a rule; return whether it is done."""
    name = getattr(function, "__name__", repr(function))
    try:
        finding = function(run)
    except Exception as exc:
        logger.warning("The alert %s is not checked any more. %s: %s", name, type(exc).__name__, exc)
        return True
    if not finding:
        return False
    what, job, iteration = name if finding is True else str(finding), run.record.training, run.metrics.iteration
    new = Alert(rule=name, what=what, time=files.now(), iteration=None if iteration < 0 else iteration)
    if job is not None and write(job.folder, new) and (url := os.environ.get(WEBHOOK)):
        send(url, f"{run.id}: {what}")
    return True
