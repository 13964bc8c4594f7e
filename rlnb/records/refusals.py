"""Why a pod does not take part in a job: a small record, which that pod writes."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json


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


def write(job: JobDir, error: str, node: int | None) -> None:
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
