"""The cause of an interruption, in two words, from the record of the job's end."""

from __future__ import annotations

import re
from typing import Literal

from rlnb.node.peers import HANGS
from rlnb.spec import Result

Cause = Literal[
    "cancelled",
    "walltime",
    "hang",
    "process killed",
    "process lost",
    "preempted",
    "node lost",
    "disk full",
    "error",
]
"""``"process lost"``: nothing was left to write a result, since the agent or its machine died. ``"process killed"``: a
signal ended a rank, mostly for lack of memory, or a pod. ``"error"``: an exception of the task's, the library's or the
user's code."""
_TEXTS: tuple[tuple[Cause, str], ...] = (
    ("disk full", r"No space left"),
    ("hang", rf"^{re.escape(HANGS)}|^The worker hangs"),
    ("process killed", r"was killed by SIG|which stands for SIG"),
)
"""What the error of a job that failed says, by cause."""
_INTERRUPTIONS: tuple[tuple[Cause, str], ...] = (
    ("cancelled", r": .*was cancelled in the queue"),
    ("walltime", r": .*has reached its (time limit|deadline)"),
    ("process killed", r": .*has used more memory than it requested|was killed, and its cluster"),
    ("node lost", r": .*has lost a node"),
    ("preempted", r": .*was preempted|was revoked by the queue"),
)
"""What the error of a job that its cluster ended says, by cause. The queue's own word, after a colon, comes first."""


def cause_of(result: Result | None) -> Cause:
    """Return why a training ended before its last iteration.

    Args:
        result: The end of its job; None if the job is lost.
    """
    if result is None:
        return "process lost"
    if result.outcome == "cancelled":
        return "cancelled"
    if result.outcome == "timeout":
        return "walltime"
    texts = (*_INTERRUPTIONS, *_TEXTS) if result.interrupted else _TEXTS
    cause = next((cause for cause, text in texts if re.search(text, result.error)), None)
    return cause or ("node lost" if result.interrupted else "error")
