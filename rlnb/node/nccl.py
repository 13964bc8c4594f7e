"""The reason in a log for which NCCL's watchdog, a thread of torch, aborted a rank."""

from __future__ import annotations

import re
from pathlib import Path

from rlnb.storage import files

_REASON = re.compile(
    r"(?:watchdog thread terminated with exception: |(?=ProcessGroupNCCL's watchdog got stuck for ))(.+)"
)
"""Torch's last message of the watchdog, or of the monitor of a watchdog that is stuck (``ProcessGroupNCCL.cpp``)."""
_LINES = 2000
"""Lines to search. Each rank of the node writes a stack of C++ after the message."""


def abort_reason(log: Path) -> str:
    """Return why the first rank that NCCL's watchdog aborted was aborted; an empty string without such a rank."""
    match = _REASON.search(files.tail(log, _LINES, limit_bytes=_LINES * 200))
    return match[1].strip() if match else ""
