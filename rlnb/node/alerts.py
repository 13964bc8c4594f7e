"""The alerts of a training: the agent of the first node looks for them, keeps them, and tells a webhook."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable

from rlnb.errors import RlnbError
from rlnb.records.alerts import Alert, write
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json

LOOK_S = 5.0
"""Seconds between two looks at the curves."""
WEBHOOK = "RLNB_ALERT_WEBHOOK"
"""Environment variable with the URL that gets each alert. It is a secret, so no record has it."""
SEND_S = 10.0
"""Seconds that the webhook has to answer."""
ATTEMPTS = 3


class Lookout:
    """Looks for what the rules of a training's alerts describe.

    Args:
        job: Folder of the training's job.
    """

    def __init__(self, job: JobDir) -> None:
        run = run_dir_of(job.path)
        self._job, self._run = job, run
        self._id, self._left = run.path.name, [*rules(run)]
        self._next_s = time.monotonic() + LOOK_S

    def tick(self) -> None:
        """Look at the curves if it is time."""
        if self._left and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + LOOK_S
            self._try(self._look)

    def _look(self) -> None:
        from rlnb.diagnosis.rules import Rule
        from rlnb.records.facts import RunFacts

        facts = RunFacts(self._run.path)
        for text in [*self._left]:
            what = Rule(text).finding(facts)
            if what is not None:
                iteration = facts.metrics.iteration
                if self._tell(text, what, None if iteration < 0 else iteration):
                    files.write_bytes(self._job.flight_request, what.encode())

    def _tell(self, rule: str, what: str, iteration: int | None) -> bool:
        """Keep an alert, and tell the webhook; return False if it is not the first one of its rule."""
        self._left.remove(rule)
        if not write(self._job, Alert(rule=rule, what=what, time=files.now(), iteration=iteration)):
            return False
        if url := os.environ.get(WEBHOOK):
            _posts.append(post := threading.Thread(target=send, args=(url, f"{self._id}: {what}"), daemon=True))
            post.start()
        return True

    def end(self) -> None:
        """Look at the curves and at the result for the last time, and wait until the webhook has answered."""
        self._next_s = 0.0
        self.tick()
        self._try(self._look_at_result)
        deadline = time.monotonic() + SEND_S
        for post in _posts:
            post.join(max(0.0, deadline - time.monotonic()))

    def _look_at_result(self) -> None:
        from rlnb.diagnosis.rules import Rule

        result = files.read_json(self._job.result) or {}
        for text in [*self._left]:
            what = Rule(text).finding_at_end(str(result.get("outcome", "failed")), str(result.get("error", "")))
            if what is not None:
                self._tell(text, what, None)

    def _try(self, look: Callable[[], None]) -> None:
        """Call a function. Its failure, such as a full disk, must not end the job."""
        try:
            look()
        except Exception as exc:
            sys.stderr.write(f"rlnb.node: the alerts could not be checked: {type(exc).__name__}: {exc}\n")
            self._left = []


_posts: list[threading.Thread] = []
"""The threads that tell the webhook."""


def rules(run: RunDir) -> tuple[str, ...]:
    """Return the rules of a run's alerts. A damaged manifest, which other readers report, has none."""
    with contextlib.suppress(RlnbError):
        return from_json(Manifest, files.read_json(run.manifest) or {}, ignore_unknown=True).alerts
    return ()


def send(url: str, text: str) -> None:
    """Post a text to a webhook, as Slack, Mattermost, Google Chat and ntfy take it (``{"text": ...}``).

    An error is written without the URL, which is a secret.
    """
    import urllib.error  # only here, since most agents send nothing
    import urllib.request

    body = json.dumps({"text": text}).encode()
    for attempt in range(ATTEMPTS):
        try:
            if not url.startswith(("https://", "http://")):
                raise ValueError("it is not an http address")
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=SEND_S):
                return
        except (OSError, ValueError) as exc:
            status = f" (HTTP status {exc.code})" if isinstance(exc, urllib.error.HTTPError) else ""
            error = f"{type(exc).__name__}{status}"
            time.sleep(2.0**attempt if attempt + 1 < ATTEMPTS else 0.0)
    sys.stderr.write(f"rlnb.node: the webhook of {WEBHOOK} did not take an alert: {error}\n")
