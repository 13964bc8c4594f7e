"""Parse torchrun's summary of the ranks that failed."""

from __future__ import annotations

import re
import signal
from datetime import datetime
from pathlib import Path

from rlnb.storage import files

_FAILURE = re.compile(r"time\s+: (\S+)\s*\n.*\n\s*rank\s+: (\d+).*\n\s*exitcode\s+: (-?\d+) ")
"""A rank in the summary; a negative exit code is a signal (``torch.distributed.elastic.multiprocessing.errors``)."""
_LINES = 1000
"""Lines to search for the summary, which has 7 lines per rank of a node."""
_AT_ONCE_S = 5.0
"""Seconds around the root cause within which a SIGKILL is not torchrun's own, which it sends only after 30 s."""


def killed_rank(log: Path) -> tuple[int, int] | None:
    """Return the rank that was killed and the signal, from the summary in a node's log; None if no rank was killed.

    The summary lists the other failures before the root cause. If two ranks fail at the same moment, its root cause may
    be the rank that merely lost its peer. Ranks that torchrun itself ended have SIGTERM, or SIGKILL later.
    """
    others, _, root = files.tail(log, _LINES, limit_bytes=_LINES * 200).rpartition("Root Cause")
    causes = [_failure(match) for match in _FAILURE.finditer(root)]
    if not causes:
        return None
    cause = causes[0]
    failures = [cause, *(_failure(match) for match in _FAILURE.finditer(others))]
    victims = [
        (rank, number)
        for time_s, rank, number in failures
        if number > 0 and number != signal.SIGTERM and abs(time_s - cause[0]) <= _AT_ONCE_S
    ]
    if not victims and cause[2] > 0:
        return cause[1], cause[2]
    return next((failure for failure in victims if failure[1] == signal.SIGKILL), victims[0] if victims else None)


def _failure(match: re.Match[str]) -> tuple[float, int, int]:
    """Return the time in seconds, the rank, and the signal; a negative signal is an exit status."""
    return datetime.strptime(match[1], "%Y-%m-%d_%H:%M:%S").timestamp(), int(match[2]), -int(match[3])
