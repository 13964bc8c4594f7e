"""Run a server alongside a kernel, and end it with the kernel."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence

from rlnb.node.agent import TERM_GRACE_S
from rlnb.node.child import die_with_parent
from rlnb.node.descendants import kill_descendants


def keep_beside(argv: Sequence[str]) -> int:
    """Run a command until it ends or the kernel closes stdin. The command inherits this process's output."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    process = os.pidfd_open(child.pid)
    ready: list[int] = []
    while process not in ready and not (0 in ready and not os.read(0, 1 << 16)):
        ready, _, _ = select.select([0, process], [], [])
    status = child.poll()  # before kill_descendants, which reaps the child
    kill_descendants(TERM_GRACE_S)
    return status or 0
