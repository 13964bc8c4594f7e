"""Where the living simulators in jobs are, in records that their kernels write for other processes of the user."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.launch.detached import HostProcess
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json

FOLDER = "simulators/kernels"
"""Folder of the records, below the root."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """A living simulator in a job of a kernel."""

    place: str
    """The job and its machine, such as ``"slurm job 12 on node3"``."""
    host: str
    """Machine of the simulator; empty as long as the job waits."""
    ends_s: float | None = None
    """Time at which the job is ended, in seconds since the epoch; None if that is not known."""
    kernel: HostProcess
    """The kernel that the simulator belongs to."""

    @property
    def state(self) -> str:
        """``"waits"``, until the job has started for the first time, or ``"lives"``."""
        return "lives" if self.host else "waits"

    @property
    def left_s(self) -> float | None:
        """Seconds until the end of the job's walltime; None if that is not known."""
        return None if self.ends_s is None else max(0.0, self.ends_s - time.time())


class Note:
    """The record of one job. It is only for display, so a full disk leaves it out.

    Args:
        root: The root of the kernel.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / FOLDER / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._removed = False

    def write(self, place: str, host: str, ends_s: float | None) -> None:
        """Record where the simulator is; the arguments are those of :class:`Whereabouts`."""
        if not self._removed:
            with contextlib.suppress(OSError, RlnbError):
                files.make_folder(self._path.parent)
                kernel = HostProcess.of(os.getpid())
                files.write_anew(self._path, Whereabouts(place=place, host=host, ends_s=ends_s, kernel=kernel))

    def remove(self) -> None:
        """Remove the record, for good."""
        self._removed = True
        with contextlib.suppress(OSError):
            entries.remove(self._path)


def whereabouts(root: Path) -> Sequence[Whereabouts]:
    """Return the living simulators in jobs of this user's kernels on this machine, by the kernels' process ids.

    The records of kernels that were killed are removed.
    """
    places = []
    for path in sorted(entries.matching(root / FOLDER, "*.json"), key=lambda path: path.name):
        with contextlib.suppress(OSError, RlnbError):
            if os.lstat(path).st_uid != os.getuid():
                continue
            one = from_json(Whereabouts, files.read_json(path, files.RECORD_BYTES) or {}, ignore_unknown=True)
            alive = one.kernel.alive()
            if alive:
                places.append(one)
            elif alive is False:
                entries.remove(path)
    return places
