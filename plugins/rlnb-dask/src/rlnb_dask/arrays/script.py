"""The job script of an element. Every element of an array runs the same text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from rlnb_dask.arrays.queue import ArrayQueue

BEGIN_S = "RLNB_BEGIN_S"
"""Environment variable with the time at which an element's job began, in seconds since the epoch."""
_OUTPUT = re.compile(r"#(SBATCH|\$) -[eo] ")
"""Directives for the output of a job, which the array sets itself."""


def element_script(*, shebang: str, header: str, prologue: Sequence[str], queue: ArrayQueue, python: str) -> str:
    """Return the job script of an element, whose argument is the file with the elements' job folders.

    The script finds its job's folder by the number of its element. From then on all output goes to the log of the run's
    first node, so a failing line of the prologue is in the log of its own run.

    Args:
        shebang: First line.
        header: Directives of the queue, one a line.
        prologue: Shell lines before the agent.
        queue: The queue.
        python: Interpreter of the agents.
    """
    directives = [line for line in header.splitlines() if not _OUTPUT.match(line)]
    line = f"${{{queue.variable}}}" if queue.first else f"$(({queue.variable} + 1))"
    return "\n".join(
        [
            shebang,
            "",
            *directives,
            f"export {BEGIN_S}=$(date +%s)",
            f'RLNB_JOB=$(sed -n "{line}p" "$1")',
            'if [ ! -d "$RLNB_JOB" ]; then',
            '    echo "This node does not see $1 or the folder of its run. Use a root that all nodes share." >&2',
            "    exit 1",
            "fi",
            'exec >>"$RLNB_JOB/node0.log" 2>&1',
            *prologue,
            f'exec {shlex.quote(python)} -P -m rlnb_dask.arrays.element "$RLNB_JOB"',
            "",
        ]
    )
