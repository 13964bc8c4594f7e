"""The last point of each curve of a run, which lists of runs show without reading its event files.

The worker of a training leaves them beside its result. They count as long as the event files are those that it has
read, which the stamps of the files say. What was read in this process counts as long.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.metrics.metrics import LastPoint, last_points
from rlnb.spec import SYSTEM
from rlnb.storage import files
from rlnb.storage.cache import Kept, stamp_of
from rlnb.storage.entries import MOST_ALIKE, files_below

VERSION = 1
"""Changes with the format, and with the rules of :mod:`rlnb.metrics.folders`."""
MOST_BYTES = 1 << 24
"""Largest record, in bytes, which is that of about 100,000 curves."""
_MOST_STEP = 1 << 63
_kept: Kept[Sequence[LastPoint]] = Kept()
"""Last points by the folder of the event files."""


def points_of(logs: Path, ends: Mapping[str, int], record: Path | None) -> Sequence[LastPoint]:
    """Return the last point of each curve, the oldest folder of each tag first.

    Args:
        logs: Folder of the event files.
        ends: Number of bytes of a file to read, by path below the folder; other files are read to their end.
        record: The file in which a worker may have left them; None if no worker does.
    """
    stamp = _stamp(logs, ends)
    points = _kept.get(logs, stamp)
    if points is not None:
        return points
    points, is_sound = _written(record, stamp) if record else None, True
    if points is None:
        points, is_sound = last_points(logs, ends)
    if is_sound:
        _kept.put(logs, stamp, points)
    return points


def write(record: Path, logs: Path, ends: Mapping[str, int], limit_s: float) -> None:
    """Write the last points of a training that is about to end, unless its event files are damaged or too long.

    Args:
        record: The file.
        logs: Folder of the event files.
        ends: See :func:`points_of`.
        limit_s: Seconds that reading may take.
    """
    stamp = _stamp(logs, ends)
    points, is_sound = last_points(logs, ends, limit_s)
    if not is_sound:
        return
    of_points = [(point.tag, point.folder, point.step, point.value) for point in points]
    text = json.dumps({"version": VERSION, "files": stamp, "points": of_points}, ensure_ascii=False)
    with contextlib.suppress(UnicodeEncodeError):  # the name of a folder may be no text
        if len(content := text.encode()) <= MOST_BYTES:
            files.write_bytes(record, content)


def _stamp(logs: Path, ends: Mapping[str, int]) -> list[list[Any]]:
    """Return what the last points depend on: path, time of writing, size and inode of each file, and its end.

    It is taken before the files are read. Whatever is written later changes the stamp.
    """
    begin = len(os.fspath(logs)) + 1
    paths = (os.fspath(path) for path in files_below(logs, lambda name: "tfevents" in name, alike=MOST_ALIKE))
    named = ((path[begin:], path) for path in paths)
    return sorted([name, *stamp_of(path), ends.get(name)] for name, path in named if not name.startswith(f"{SYSTEM}/"))


def _written(record: Path, stamp: object) -> list[LastPoint] | None:
    """Return the recorded points; None if there are none, if they are not of these files, or if they are malformed.

    The owner of the run may have written anything.
    """
    try:
        data = files.read_json(record, MOST_BYTES)
        if data is None or data.get("version") != VERSION or data.get("files") != stamp:
            return None
        points: Any = data["points"]
        return [_point(*values) for values in points]
    except (RlnbError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _point(tag: Any, folder: Any, step: Any, value: Any) -> LastPoint:
    """Return a recorded point.

    Raises:
        ValueError: A value is none that an event file can have.
        OverflowError: The value is too large.
    """
    is_step = step is None or (type(step) is int and -_MOST_STEP <= step < _MOST_STEP)
    if type(tag) is not str or type(folder) is not str or not is_step or type(value) not in (int, float):
        raise ValueError("a point has a value of the wrong type")
    tag.encode()  # a text of JSON may have characters that no text has
    folder.encode()
    return LastPoint(
        tag=sys.intern(tag), folder=sys.intern(folder), step=step, value=math.nan if step is None else float(value)
    )
