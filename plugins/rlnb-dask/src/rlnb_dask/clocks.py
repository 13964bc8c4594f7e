"""The clocks of the nodes, compared with this machine's before a training starts.

rlnb allows for clocks that differ, but others do not: Kerberos and munge refuse what is five minutes old, and a person
compares the times in curves and logs. A clock that is a day away is no drift, and certificates of trackers are refused.
"""

from __future__ import annotations

import logging
import socket
import statistics
from collections.abc import Sequence

from rlnb_dask.node import NodeFacts, where

logger = logging.getLogger("rlnb_dask")
WARN_S, REFUSE_S = 300.0, 86400.0
"""Seconds between two clocks from which on a training starts with a warning, and from which on it does not start."""
ALIKE_S = 60.0
"""Seconds within which the clocks of all nodes agree, so that it is this machine's that is wrong."""
FIX = "Synchronise it (chrony, NTP)"
OTHERS = 'or leave the node out, on Slurm with directives=["--exclude=NODE"]'


def ahead_s(clock_s: float, begin_s: float, end_s: float) -> float:
    """Return the seconds by which a node's clock is ahead of this machine's, at least; negative if it is behind.

    Args:
        clock_s: What the node's clock showed between the question and the answer.
        begin_s: What this machine's clock showed before the question.
        end_s: The same after the answer.
    """
    return clock_s - min(max(clock_s, begin_s), end_s)


def problems(nodes: Sequence[NodeFacts], ahead: Sequence[float]) -> list[str]:
    """Return a line for each clock with which no training can start; log a warning for others that are wrong.

    Args:
        nodes: All nodes, in order.
        ahead: Seconds by which the clock of each is ahead of this machine's.
    """
    here = socket.gethostname()
    most = max(map(abs, ahead), default=0.0)
    if most < WARN_S:
        return []
    usual_s = statistics.median(ahead)
    if len(nodes) > 1 and abs(usual_s) >= WARN_S and max(ahead) - min(ahead) <= ALIKE_S:
        lines = [(usual_s, f"the clock of this machine ({here}) is {_apart(-usual_s)} those of all nodes. {FIX}")]
    else:
        pairs = enumerate(zip(nodes, ahead, strict=True))
        lines = [
            (s, f"{where(number, facts)}: its clock is {_apart(s)} that of {here}. {FIX}, {OTHERS}")
            for number, (facts, s) in pairs
            if abs(s) >= WARN_S
        ]
    for seconds, line in lines:
        if abs(seconds) < REFUSE_S:
            logger.warning("Warning: %s", line)
    return [line for seconds, line in lines if abs(seconds) >= REFUSE_S]


def _apart(seconds: float) -> str:
    """Return how far a clock is away, such as ``"7 min behind"``."""
    size = abs(seconds)
    unit, divisor = ("days", 86400) if size >= 2 * 86400 else ("h", 3600) if size >= 2 * 3600 else ("min", 60)
    return f"{size / divisor:.0f} {unit} {'ahead of' if seconds > 0 else 'behind'}"
