"""The alerts of a training in the notebook that started it: it prints them, and calls the rules that are functions."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.diagnosis.rules import ENDED as AT_END
from rlnb.diagnosis.rules import FAILED
from rlnb.node.alerts import send
from rlnb.records.incidents import WEBHOOK, Alert, alerts_of, write_alert
from rlnb.spec import ENDED
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts

logger = logging.getLogger(__name__)

AlertFunction = Callable[[Any], "str | bool | None"]
"""A rule in Python: it takes the :class:`rlnb.Run`, and returns the text of an alert, or True for its own name."""
POLL_S = 2.0
"""Seconds between two looks."""
END_S = 45.0
"""Seconds after the end of a training in which its agent may still alert."""


def follow(run: RunFacts, functions: Mapping[str, AlertFunction]) -> threading.Thread | None:
    """Print the alerts of a run in this process until the run has ended, in a thread; None if it has no rules.

    Args:
        run: The run.
        functions: Rules that are called here, since only this process has them, by the names in the manifest.
    """
    if not run.manifest.alerts:
        return None
    if (before := _threads.get(run.path)) and before.is_alive():
        return before  # it goes on with the next job of a resumed run
    reader = run.reread()  # readers are not thread-safe
    thread = threading.Thread(target=_follow, args=(reader, {**functions}), name="rlnb-alerts", daemon=True)
    _threads[run.path] = thread
    thread.start()
    return thread


_threads: dict[Path, threading.Thread] = {}
"""The newest thread for each run, by its folder."""


def _follow(run: RunFacts, functions: dict[str, AlertFunction]) -> None:
    keys = {_key(alert) for alert in run.alerts}
    ended_s: float | None = None
    while True:
        is_over = run.state in ENDED  # before the last look
        if is_over and ended_s is None:
            run, ended_s = run.reread(), time.monotonic()  # a reader may be a tenth of a second behind
        for name in [*functions]:
            if _alerts(run, name, functions[name]):
                del functions[name]
        for alert in run.alerts:
            if _key(alert) not in keys:
                keys.add(_key(alert))
                print(f"Alert of {run.id}: {alert.what}", flush=True)
        if is_over:
            if not _awaited(run) or (ended_s is not None and time.monotonic() - ended_s > END_S):
                return
        else:
            ended_s = None  # the run was resumed
        time.sleep(POLL_S)


def _key(alert: Alert) -> tuple[str, str]:
    return alert.rule, alert.time


def _awaited(run: RunFacts) -> bool:
    """Return whether the agent of an ended training has still to alert, since it does so after the result."""
    rules = {AT_END} if run.state in ("completed", "cancelled") else {AT_END, FAILED}
    job = run.record.training
    names = {alert.rule for alert in alerts_of([job.folder] if job else [])}
    return bool((rules & {*run.manifest.alerts}) - names)


def _alerts(run: RunFacts, name: str, function: AlertFunction) -> bool:
    """Call a rule; return whether it is done."""
    try:
        finding = function(run)
    except Exception as exc:
        logger.warning("The alert %s is not checked any more. %s: %s", name, type(exc).__name__, exc)
        return True
    if not finding:
        return False
    what, job, iteration = name if finding is True else str(finding), run.record.training, run.metrics.iteration
    alert = Alert(rule=name, what=what, time=files.now(), iteration=None if iteration < 0 else iteration)
    if job is not None and write_alert(job.folder, alert):
        files.write_bytes(job.folder.flight_request, what.encode())
        if url := os.environ.get(WEBHOOK):
            send(url, f"{run.id}: {what}")
    return True
