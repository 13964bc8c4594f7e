"""The checkpoints that a training has written, with the time that each one took: one line of JSON for each."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """One checkpoint that was written."""

    file: str
    """Name of the checkpoint's file or folder, or of a companion."""
    end_s: float
    """Time at which it was complete, in seconds since the epoch."""
    duration_s: float
    """Seconds that the training spent on it."""
    size: int = 0
    """Bytes of the file; 0 in the records of older versions of rlnb."""


def append(job: JobDir, save: Save) -> None:
    """Add a checkpoint to a job's record. A full disk, or a job whose folder was removed, does not end the training."""
    # One write to the end of the file: a training that is killed leaves at most one torn line.
    with contextlib.suppress(OSError), entries.open_to_add(job.saves) as file:
        file.write((json.dumps(files.plain(save)) + "\n").encode())


def saves_of(job: JobDir) -> list[Save] | None:
    """Return the checkpoints that a job has written, oldest first; None if they were not recorded.

    Torn and foreign lines are skipped.
    """
    lines = _lines(job.saves)
    if lines is None:
        return None
    saves = []
    for line in lines:
        with contextlib.suppress(ValueError, RlnbError):
            data = json.loads(line)
            saves += [from_json(Save, data, ignore_unknown=True)] if isinstance(data, dict) else []
    return saves


def _lines(path: Path) -> list[str] | None:
    try:
        with files.open_regular(path) as file:
            return file.read(files.LARGEST_BYTES).decode("utf-8", "replace").splitlines()
    except (OSError, RlnbError):
        return None
