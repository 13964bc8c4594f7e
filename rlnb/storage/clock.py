"""The age of files, by the clock of their file system. Standard library only.

Several machines write to a shared file system, and their clocks differ. The times of its files all come from one clock,
that of the file server, so a file is compared with another one that has just been made there.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from rlnb.storage.access import made_anew

VALID_S = 10.0
"""Seconds for which the difference between two clocks is used again."""
SILENT_AFTER_S = 60.0
"""Age of a heartbeat after which a process on another machine counts as gone."""
FUTURE_S = 5.0
"""Seconds by which a file may lie in the future, since clocks and time stamps are not exact."""

_offsets: dict[int, tuple[float, float]] = {}
"""By device of a file system: when its clock was read (monotonic), and its seconds ahead of this machine's clock."""


def age_s(path: Path, doubt_s: float = 0.0) -> float:
    """Return the seconds since a file was last written or touched, by the clock of its file system.

    A file that does not exist is infinitely old. So is one with a time in the future: the clock was set back, and no
    living process has touched the file since.

    Args:
        path: The file.
        doubt_s: Seconds to subtract if the folder is not writable, because the clock of its file system cannot be read.
            This machine's clock is used then.
    """
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return float("inf")
    offset = _offset_s(path.parent, stat.st_dev)
    age = time.time() + (offset or 0.0) - stat.st_mtime
    if offset is None:
        return max(0.0, age - doubt_s)
    return max(0.0, age) if age > -FUTURE_S else float("inf")


def now_s(folder: Path) -> float:
    """Return the time, in seconds since the epoch, by the clock of a folder's file system.

    It is this machine's time if the folder cannot be written or does not exist.
    """
    try:
        return time.time() + (_offset_s(folder, folder.stat().st_dev) or 0.0)
    except OSError:
        return time.time()


def _offset_s(folder: Path, device: int) -> float | None:
    """Return the seconds by which a file system's clock is ahead of this machine's; None if that is unknown."""
    read_s, offset = _offsets.get(device, (float("-inf"), 0.0))
    if time.monotonic() - read_s > VALID_S:
        try:
            offset = made_anew(folder).st_mtime - time.time()
        except OSError:
            return None
        _offsets[device] = time.monotonic(), offset
    return offset


def moment_s(text: object) -> float | None:
    """Return a time of a record in seconds since the epoch; None if it is not one. Without a zone it is in UTC."""
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
