"""Why a job waits or stands still: a small record, which the process that knows the reason writes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.storage import entries, files
from rlnb.storage.clock import age_s
from rlnb.storage.serial import from_json

MOST_TEXT = 500
"""Most characters of a reason."""
STALE_AFTER_S = 60.0
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
                files.write_anew(self._job.waits, new)
                self._written = new


def read(job: JobDir) -> Waits | None:
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
    return record if age_s(beat) < STALE_AFTER_S else None
