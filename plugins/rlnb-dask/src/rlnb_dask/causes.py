"""The causes of interruptions, from the output of jobs and from what a queue says about them."""

from __future__ import annotations

import re

UNREACHED = re.compile(r"Timed out starting worker|Worker failed to start")
"""What Dask's worker prints when it has found no way to its scheduler."""
SCHEDULER = re.compile(r"Waiting to connect to:\s+(\S+)")
_INFO = re.compile(r".* - distributed\S* - INFO - ")


def unreached(output: str, came: int, nodes: int) -> str:
    """Return why nodes of a training never reached this machine; an empty text if its jobs ended otherwise.

    Args:
        output: Output of the training's jobs.
        came: Number of nodes that have reached this machine.
        nodes: Number of nodes of the training.
    """
    if came >= nodes or not UNREACHED.search(output):
        return ""
    address = SCHEDULER.search(output)
    at = f" at {address[1]}" if address else ""
    return (
        f"{nodes - came} of {nodes} nodes never reached this machine{at}. Check the "
        "firewall between them, or select another network of this machine with the argument host_interface"
    )


def without_reports(output: str) -> str:
    """Return a job's output without the reports of Dask's worker, which name no cause."""
    return "\n".join(line for line in output.splitlines() if not _INFO.match(line.strip()))


def with_cause(error: str, cause: str) -> str:
    """Return an error with a cause from the queue in place of its own guess, which follows a colon.

    Args:
        error: Such as ``"node 1 (n7) is lost: it is down, or its queue has ended the job"``.
        cause: Such as ``"Slurm's job 7 was preempted"``; an empty text keeps the guess.
    """
    return f"{error.partition(': ')[0]}: {cause}" if cause and cause not in error else error
