"""The time at which the agents of a job end it, as the process that owns the cluster tells them.

That process and the nodes have clocks of their own. The record therefore has what the writer's clock showed as well,
and a reader turns the time into one of its own clock, by the age of the file on the file system that both share.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.storage import files
from rlnb.storage.clock import age_s
from rlnb.storage.serial import from_json

EXACT_S = 5.0
"""Difference of two clocks up to which they count as equal, since the age of a file is not exact."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """The time at which a job is to end, as stored in ``deadline.json``."""

    time_s: float
    """The time, in seconds since the epoch, by the writer's clock."""
    now_s: float | None = None
    """What the writer's clock showed when it wrote the record; None in records of older versions."""


def write(job: JobDir, time_s: float) -> None:
    """Tell the agents of a job when to end it, in place of an earlier time.

    Args:
        job: Folder of the job.
        time_s: The time, in seconds since the epoch, by this machine's clock.

    Raises:
        OSError: The record cannot be written.
    """
    files.replace_json(job.deadline, Deadline(time_s=time_s, now_s=time.time()))


def here_s(time_s: float, now_s: float | None, ago_s: float = 0.0) -> float:
    """Return a time of another machine by this machine's clock.

    Args:
        time_s: The time, in seconds since the epoch, by the other machine's clock.
        now_s: What that clock showed when the other machine told the time; None if it is not known.
        ago_s: Seconds since then.
    """
    if now_s is None or not math.isfinite(ago_s):
        return time_s
    shift_s = time.time() - ago_s - now_s
    return time_s + shift_s if abs(shift_s) > EXACT_S else time_s


class DeadlineReader:
    """Reads the record of one job. A file that has not changed is not read again.

    Args:
        job: Folder of the job.
    """

    def __init__(self, job: JobDir) -> None:
        self._path = job.deadline
        self._read: tuple[int, int] | None = None
        self._time_s: float | None = None

    def read(self) -> float | None:
        """Return the time, in seconds since the epoch, by this machine's clock; None if it was never told.

        A damaged record must not end a training, so the last good one counts.
        """
        try:
            stat = self._path.stat()
        except OSError:
            return self._time_s
        if (stat.st_ino, stat.st_mtime_ns) != self._read:
            self._read = stat.st_ino, stat.st_mtime_ns
            try:
                record = from_json(Deadline, files.read_json(self._path, files.RECORD_BYTES) or {}, ignore_unknown=True)
            except RlnbError:
                return self._time_s
            self._time_s = here_s(record.time_s, record.now_s, age_s(self._path))
        return self._time_s
