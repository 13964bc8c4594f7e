"""What happens to a training: waits, restarts, pods that take no part, alerts, and buffers that are too small.

Each is a small JSON file, written by the process that knows it; a restart has none, since it follows from the jobs and
their results. Standard library only: the node agent imports this.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.spec import Result
from rlnb.storage import entries, files
from rlnb.storage.clock import age_s
from rlnb.storage.serial import from_json, to_json

MOST_TEXT = 500
"""Most characters of a reason."""
WAITS_STALE_AFTER_S = 60.0
"""Seconds without a heartbeat of its writer after which a record no longer counts. A query of a queue may take 30 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits:
    """Why a job waits, as stored in ``waits.json`` as long as it does."""

    what: str
    """The reason, in one line, such as ``"PENDING (JobHeldAdmin)"`` or ``"1 of 2 nodes are ready"``."""
    since: str
    """Begin of the wait, UTC, in ISO 8601. It stays the same if only the reason changes."""
    runs: tuple[str, ...] = ()
    """Ids of the runs that have to end first, as far as they are known."""
    node: int | None = None
    """Number of the node whose agent wrote the record; None for the process that owns the cluster."""

    @property
    def seconds(self) -> float:
        """Seconds since the begin of the wait; 0 if the record has no valid time."""
        try:
            return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds())
        except (ValueError, TypeError, OverflowError):  # a damaged record
            return 0.0


class WaitsWriter:
    """Writes the record of one job. The file changes only if the reason does.

    Args:
        job: Folder of the job.
        node: Number of the node whose agent writes; None for the process that owns the cluster.
    """

    def __init__(self, job: JobDir, node: int | None = None) -> None:
        self._job, self._node = job, node
        self._written: Waits | None = None

    def write(self, what: str, runs: Sequence[str] = ()) -> None:
        """Record why the job waits; an empty reason removes the record. An error of the file system is ignored.

        Args:
            what: The reason. Line breaks become spaces.
            runs: Ids of the runs that have to end first.
        """
        what, last = " ".join(what.split())[:MOST_TEXT], self._written
        with contextlib.suppress(OSError):  # a full disk must not end the job; the next call tries again
            if not what:
                if last is not None:
                    entries.remove(self._job.waits)
                    self._written = None
                return
            new = replace(last or Waits(what="", since=files.now()), what=what, runs=tuple(runs), node=self._node)
            if new != last:
                files.replace_json(self._job.waits, new)
                self._written = new


def read_waits(job: JobDir) -> Waits | None:
    """Return why a job that has not ended waits; None if nothing is recorded, or if the writer of the record is gone.

    A damaged record is skipped, which a warning says once.
    """
    try:
        data = files.read_json(job.waits, files.RECORD_BYTES)
        record = None if data is None else from_json(Waits, data, ignore_unknown=True)
    except RlnbError as exc:
        files.warn_once(f"{job.waits}: {exc}")
        return None
    if record is None:
        return None
    beat = job.host_alive if record.node is None else job.alive(record.node)
    return record if age_s(beat) < WAITS_STALE_AFTER_S else None


# -- restarts --------------------------------------------------------------------------------------------------------


GIVEN_BACK = "given_back"
"""Key among the values of a result: the job gave its nodes back before it trained, which is no interruption."""
LAUNCH_FAILED = "launch_failed"
"""The same of a job that a node could not start, such as one whose Prolog fails."""
MOST_LAUNCH_FAILURES = 1
"""Number of failed launches in a row after which a training is submitted once more."""


def never_trained(result: Result) -> bool:
    """Return whether a job has ended before it trained, for a reason that lies with the nodes."""
    return bool(result.values.get(GIVEN_BACK) or result.values.get(LAUNCH_FAILED))


def interruptions(results: Iterable[Result | None]) -> int:
    """Return how many of a run's trainings its cluster has interrupted, from their results."""
    return sum(result is not None and result.interrupted and not never_trained(result) for result in results)


def launch_failures(results: Sequence[Result | None]) -> int:
    """Return how many of a run's newest trainings have failed in a row because a node could not start them.

    Args:
        results: The results of all trainings, oldest first.
    """
    newest_first = (result is not None and bool(result.values.get(LAUNCH_FAILED)) for result in reversed(results))
    return sum(1 for _ in itertools.takewhile(bool, newest_first))


@dataclass(frozen=True, kw_only=True, slots=True)
class Restart:
    """One of the restarts of a run after an interruption by its cluster."""

    number: int
    """Number of the restart, from 1."""
    most: int
    """Number of restarts after which the training is not continued."""
    cause: str
    """End of the training before, such as ``"node 1 (gpu07) is lost: ..."``; empty if its record is unreadable."""

    @property
    def count(self) -> str:
        """The number of the restart as text, such as ``"restart 2 of 3"``."""
        return f"restart {self.number} of {self.most}"

    def __str__(self) -> str:
        return f"{self.count} after: {self.cause}" if self.cause else self.count


# -- pods that do not take part --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The reason of one pod."""

    error: str
    """The reason, in one line."""
    host: str
    """Host name of the pod."""
    node: int | None = None
    """Number of its node; None if the pod could not tell."""
    time: str = ""
    """Time of writing, UTC, in ISO 8601."""

    def __str__(self) -> str:
        place = self.host if self.node is None else f"node {self.node} ({self.host})"
        return f"{place} does not start: {self.error}"


def write_refusal(job: JobDir, error: str, node: int | None) -> None:
    """Record why this pod does not take part in a job. A full disk is no error here.

    Args:
        job: Folder of the job.
        error: The reason.
        node: Number of this pod's node; None if it is unknown.
    """
    host = socket.gethostname()
    refusal = Refusal(error=error, host=host, node=node, time=files.now())
    path = job.refusal(f"node{node}" if node is not None else re.sub(r"[^\w-]", "_", host))
    with contextlib.suppress(OSError, RlnbError):
        if (files.read_json(path) or {}).get("error") != error:  # a pod that is started again may fail differently
            entries.remove(path)
            files.write_once(path, refusal)


def refusals_of(job: JobDir) -> Sequence[Refusal]:
    """Return the refusals of pods, without those of nodes that have started since. Damaged records are skipped."""
    refusals = []
    for path in job.refusals():
        try:
            refusal = from_json(Refusal, files.read_json(path, files.RECORD_BYTES) or {}, ignore_unknown=True)
            if refusal.node is None or not _later(job, refusal.node, path.stat().st_mtime):
                refusals.append(refusal)
        except (RlnbError, OSError) as exc:
            files.warn_once(f"{path} is skipped. {exc}")
    return refusals


def _later(job: JobDir, node: int, time_s: float) -> bool:
    """Return whether a node has started after a time of the file system."""
    try:
        return job.running(node).stat().st_mtime > time_s
    except OSError:
        return False


# -- alerts ----------------------------------------------------------------------------------------------------------


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


def write_alert(job: JobDir, alert: Alert) -> bool:
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


# -- buffers of the physics solver -----------------------------------------------------------------------------------


CONSTRAINTS, CONTACTS = "njmax", "nconmax"
"""Limits in Isaac Lab's config of MuJoCo Warp's solver."""
STEP = 64
"""Suggested sizes are multiples of this number."""
SPARE = 1.25
"""Factor by which a suggested size exceeds the largest need that was seen."""
SETTING = "sim.physics.solver_cfg"
"""Path of the solver's settings in the config of an env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortage:
    """A limit of the physics solver that the contacts or constraints of some envs exceed."""

    limit: str
    """Name of the limit in Isaac Lab's config of the solver, e.g. ``"njmax"``."""
    size: int
    """Size of the buffer, per env."""
    needed: int
    """Least size that would have been enough, as far as it was seen."""
    envs: int
    """Largest number of envs that exceeded the limit in one look."""
    num_envs: int
    """Number of envs of the rank."""

    @property
    def what(self) -> str:
        """The shortage with its numbers, in a sentence."""
        if self.limit == CONSTRAINTS:
            return (
                f"The physics solver dropped constraints in {self.envs} of {self.num_envs} envs, because an env needed "
                f"at least {self.needed} and njmax is {self.size}. Bodies can pass through each other."
            )
        return (
            f"The physics solver dropped contacts. All envs share a buffer of {self.limit}={self.size} for each env, "
            f"and the mean need of an env was at least {self.needed}. Bodies can pass through each other."
        )

    @property
    def fix(self) -> str:
        """The size to try, as an override of the task."""
        size = -(-int(max(self.needed, self.size) * SPARE) // STEP) * STEP
        return f'Use overrides={{"{SETTING}.{self.limit}": {size}}}, or set it in the task.'

    def joined(self, other: Shortage) -> Shortage:
        """Return the larger needs of two looks at the same limit."""
        return Shortage(
            limit=self.limit,
            size=self.size,
            needed=max(self.needed, other.needed),
            envs=max(self.envs, other.envs),
            num_envs=self.num_envs,
        )


def write_shortage(path: Path, shortages: Iterable[Shortage]) -> None:
    """Write the shortages of a rank, in place of earlier ones."""
    text = json.dumps({shortage.limit: to_json(shortage) for shortage in shortages})
    files.write_bytes(path, text.encode())


def read_shortages(paths: Iterable[Path]) -> tuple[Shortage, ...]:
    """Return the shortages in the files of all ranks, one for each limit. A damaged file is skipped."""
    shortages: dict[str, Shortage] = {}
    for path in paths:
        try:
            values = files.read_json(path) or {}
            shortages_of_rank = [
                from_json(Shortage, value, ignore_unknown=True)
                for value in values.values()
                if isinstance(value, Mapping)
            ]
        except RlnbError:
            continue
        for shortage in shortages_of_rank:
            shortages[shortage.limit] = shortage.joined(shortages.get(shortage.limit, shortage))
    return tuple(shortages.values())
