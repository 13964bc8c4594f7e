"""The alerts of a training: one JSON file for each."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json

WEBHOOK = "RLNB_ALERT_WEBHOOK"
"""Environment variable with the address that gets each alert. It is a secret, so no record has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    """Something about a training that its user wanted to be told."""

    rule: str
    """The rule, as it was passed to :func:`rlnb.train`."""
    what: str
    """The finding, with the numbers that it rests on."""
    time: str
    """Time, UTC, in ISO 8601."""
    iteration: int | None = None
    """Learning iteration; None before the first."""


def write(job: JobDir, alert: Alert) -> bool:
    """Write an alert; return False if the job already has one of the same rule."""
    files.make_folder(job.alerts)
    name = hashlib.sha256(alert.rule.encode()).hexdigest()[:16]  # one file for each rule: two writers cannot both win
    if not files.write_once(job.alerts / f"{name}.json", alert):
        return False
    entries.touch_folder(job.path.parent)  # lists of runs read an ended run again if its folder of jobs has changed
    return True


def alerts_of(jobs: Iterable[JobDir]) -> list[Alert]:
    """Return the alerts of some jobs, oldest first. A damaged one is skipped."""
    alerts = []
    for job in jobs:
        for path in entries.matching(job.alerts, "*.json"):
            with contextlib.suppress(RlnbError):
                alerts.append(from_json(Alert, files.read_json(path) or {}, ignore_unknown=True))
    return sorted(alerts, key=lambda alert: alert.time)
