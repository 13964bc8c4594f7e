"""The alerts of a training: the agent of the first node looks for them, keeps them, and tells a webhook."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.records.incidents import WEBHOOK, Alert, write_alert
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts

LOOK_S = 5.0
"""Least number of seconds between two looks at the curves."""
SHARE = 0.05
"""Largest share of a core that the looks take."""
READ_S, END_READ_S = 0.2, 10.0
"""Most seconds of a look, and of the last one, for reading the event files."""
ANSWER_S, ATTEMPTS = 5.0, 3
"""Seconds that the webhook has to answer, and number of times that it is told."""
SEND_S = 20.0
"""Seconds that the agent waits at its end for the webhook."""


class AlertMonitor:
    """Looks for what the rules of a training's alerts describe.

    Args:
        job: Folder of the training's job.
    """

    def __init__(self, job: JobDir) -> None:
        self._job, self._run = job, run_dir_of(job.path)
        self._rules = list(rules(self._run))
        self._facts: RunFacts | None = None
        self._next_s = time.monotonic() + LOOK_S
        self._read_s = READ_S
        self._failed: set[str] = set()
        """Rules whose failure was written to the log."""

    def tick(self) -> None:
        """Look at the curves if it is time."""
        if self._rules and time.monotonic() >= self._next_s:
            start_s = time.monotonic()
            self._look()
            end_s = time.monotonic()
            self._next_s = end_s + max(LOOK_S, (end_s - start_s) / SHARE)

    def end(self) -> None:
        """Look at the curves and at the result for the last time, and wait until the webhook has answered."""
        self._read_s = END_READ_S
        self._look()
        result = {}
        with contextlib.suppress(RlnbError):
            result = dict(files.read_json(self._job.result) or {})
        outcome, error = str(result.get("outcome", "failed")), str(result.get("error", ""))
        values = result.get("values")
        interrupted = isinstance(values, dict) and values.get("interrupted") and outcome != "cancelled"
        if not interrupted and not files.there(self._job.successor):  # otherwise the run goes on in another job
            for text in [*self._rules]:
                self._try(text, functools.partial(self._at_end, text, outcome, error))
        deadline = time.monotonic() + SEND_S
        for post in _posts:
            post.join(max(0.0, deadline - time.monotonic()))

    def _look(self) -> None:
        for text in [*self._rules]:
            self._try(text, functools.partial(self._check, text))

    def _try(self, text: str, check: Callable[[], None]) -> None:
        """Check a rule. Its failure, such as one of the file system, must not end the job."""
        try:
            check()
        except Exception as exc:
            if text not in self._failed:
                self._failed.add(text)
                sys.stderr.write(f"rlnb.node: the alert {text!r} could not be checked: {type(exc).__name__}: {exc}\n")

    def _check(self, text: str) -> None:
        from rlnb.diagnosis.rules import Rule
        from rlnb.records.facts import RunFacts

        if self._facts is None:
            self._facts = RunFacts(self._run.path)  # its readers read only what was appended
        self._facts.metrics.limit_s = self._facts.system.limit_s = self._read_s
        what = Rule(text).finding(self._facts)
        if what is not None:
            iteration = self._facts.metrics.iteration
            if self._tell(text, what, None if iteration < 0 else iteration):
                files.write_bytes(self._job.flight_request, what.encode())

    def _at_end(self, text: str, outcome: str, error: str) -> None:
        from rlnb.diagnosis.rules import Rule

        what = Rule(text).finding_at_end(outcome, error)
        if what is not None:
            self._tell(text, what, None)

    def _tell(self, rule: str, what: str, iteration: int | None) -> bool:
        """Keep an alert, and tell the webhook; return False if it is not the first one of its rule."""
        self._rules.remove(rule)
        try:
            if not write_alert(self._job, Alert(rule=rule, what=what, time=files.now(), iteration=iteration)):
                return False
        except OSError as exc:  # a full disk, say, of which the webhook can be told
            sys.stderr.write(f"rlnb.node: the alert {rule!r} could not be kept: {exc}\n")
        if url := os.environ.get(WEBHOOK):
            text = f"{self._run.path.name}: {what}"
            _posts.append(post := threading.Thread(target=send, args=(url, text), daemon=True))
            post.start()
        return True


_posts: list[threading.Thread] = []
"""The threads that tell the webhook."""


def rules(run: RunDir) -> tuple[str, ...]:
    """Return the rules of a run's alerts. A damaged manifest, which other readers report, has none."""
    with contextlib.suppress(RlnbError):
        return from_json(Manifest, files.read_json(run.manifest) or {}, ignore_unknown=True).alerts
    return ()


def send(url: str, text: str) -> None:
    """Post a text to a webhook, as Slack, Mattermost and Google Chat take it (``{"text": ...}``).

    An error is written without the address, which is a secret, and without its own text, which may quote the address.
    """
    import urllib.error  # only here, since most agents send nothing
    import urllib.request

    body = json.dumps({"text": text}).encode()
    for attempt in range(ATTEMPTS):
        try:
            if not url.startswith(("https://", "http://")):
                raise ValueError("it is not an http address")
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=ANSWER_S):
                return
        except Exception as exc:
            status = f" (HTTP status {exc.code})" if isinstance(exc, urllib.error.HTTPError) else ""
            error = f"{type(exc).__name__}{status}"
            time.sleep(2.0**attempt if attempt + 1 < ATTEMPTS else 0.0)
    sys.stderr.write(f"rlnb.node: the webhook of {WEBHOOK} did not take an alert: {error}\n")
