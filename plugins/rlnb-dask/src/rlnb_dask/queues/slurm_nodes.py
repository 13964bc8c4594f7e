"""Why nodes of an ended job of Slurm were drained, and whether that, rather than a person, has ended the job.

Slurm cancels a job that a node cannot start, and drains the node. Its record of the job does not say so, and looks like
that of a job that a person has cancelled. The sources are the answers of Slurm 22.05 and its function drain_nodes().
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlnb_dask.queues import queries, slurm_answers

MAY_BE_THE_NODES = ("CANCELLED", "FAILED", "NODE_FAIL", "BOOT_FAIL")
"""Final states of jobs that a node may have ended."""
STOPPED = ("CANCELLED", "FAILED")
"""Those of them that a person, or the job's own script, may have caused as well."""
OWN_REASONS = re.compile(
    r"Prolog error|Job env setup error|batch job complete failure|Duplicate jobid|Not responding"
    r"|Node unexpectedly rebooted|ResumeTimeout reached|Node failed to resume|Reboot timed out|SlurmdSpoolDir is full"
    r"|Invalid node configuration"
    r"|Low (RealMemory|TmpDisk|CPUs|socket\S*|core\S*)|gres/\S+ count",
    re.IGNORECASE,
)
"""Beginnings of the reasons that Slurm itself writes when a node cannot start or keep a job.

Those of a node that cannot clean up after a job ("Kill task failed", "Epilog error") are consequences of its end. Texts
of administrators, and of their health checks, name a node and prove nothing: a person may have cancelled the job."""
AT_THE_START = re.compile(
    r"Prolog error|Job env setup error|ResumeTimeout reached|Node failed to resume", re.IGNORECASE
)
"""Those of them that a node can only get before a job runs on it.

Slurm may show its job as running until it misses the job half a minute later, and then as NODE_FAIL."""
APART_S = 5.0
"""Longest time between the end of a job and the drain that explains it, in seconds of the controller's clock."""
SETTLE_S = 2.0
"""Seconds that a drain may come after the end of its job."""
POLL_S = 0.25
_NODE = re.compile(r"^NodeName=(\S+)", re.MULTILINE)
_REASON = re.compile(r"\sReason=(.*?) ?\[[^\]@\s]+@(\d+)\]")
_USER = re.compile(r"CANCELLED by (\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a node is not to be used, as Slurm shows it."""

    node: str
    text: str
    time_s: int
    """Time at which the reason was set, in seconds since the epoch."""

    def __str__(self) -> str:
        return f"{self.node}: {self.text}"


def reasons_of(answer: str) -> Sequence[Reason]:
    """Return the reasons of nodes from the output of ``scontrol --oneliner show node``; times are numbers."""
    lines = ((_NODE.search(line), _REASON.search(line)) for line in answer.splitlines())
    return [Reason(node=n[1], text=r[1].strip(), time_s=int(r[2])) for n, r in lines if n and r and r[1].strip()]


def final_states(ids: Sequence[str], within_s: float = 0.0) -> Mapping[str, str]:
    """Return the state of each job that Slurm's controller remembers, with the nodes that may have ended it.

    Args:
        ids: Ids of the jobs.
        within_s: Seconds to wait for a job that is completing, and for the drain of a node that could not start one.

    Returns:
        By id, one word of Slurm, such as ``"TIMEOUT"``; with nodes and their reasons for a job that they may have
        ended, such as ``"CANCELLED (node1: bad disk)"``; or :func:`queries.launch_failed` if they have.
    """
    deadline, settled = time.monotonic() + within_s, time.monotonic() + min(within_s, SETTLE_S)
    while True:
        jobs = slurm_answers.jobs(ids)
        states = {number: state_of(job, _reasons(job)) for number, job in jobs.items()}
        completing = "COMPLETING" in states.values() and time.monotonic() < deadline
        unexplained = any(states[n] in STOPPED and _nodes(job) for n, job in jobs.items())
        if not completing and not (unexplained and time.monotonic() < settled):
            return {n: _unless_own(n, state, jobs[n]["JobState"]) for n, state in states.items()}
        time.sleep(POLL_S)


def state_of(job: Mapping[str, str], reasons: Sequence[Reason]) -> str:
    """Return the state of a job, with the nodes that may have ended it; see :func:`final_states`.

    Args:
        job: The fields of the job, with times in seconds since the epoch.
        reasons: The reasons of its nodes.
    """
    state, begin, end = job["JobState"], job.get("StartTime", ""), job.get("EndTime", "")
    if state not in MAY_BE_THE_NODES or not (begin.isdigit() and end.isdigit()):
        return state
    during = [reason for reason in reasons if int(begin) - APART_S <= reason.time_s <= int(end) + APART_S]
    at_the_end = [reason for reason in during if abs(reason.time_s - int(end)) <= APART_S]
    own = [reason for reason in at_the_end if OWN_REASONS.match(reason.text)] if state in STOPPED else []
    own = own or [reason for reason in during if state == "NODE_FAIL" and AT_THE_START.match(reason.text)]
    if own:
        return queries.launch_failed("; ".join(map(str, own)))
    return f"{state} ({'; '.join(map(str, during))})" if during else state


def word_of(state: str) -> str:
    """Return Slurm's own word of a state."""
    return state.partition(" ")[0]


def _nodes(job: Mapping[str, str]) -> str:
    """Return the nodes of an ended job that they may have ended, such as ``"node[0-1]"``; empty if there are none."""
    nodes = job.get("NodeList", "")
    return nodes if job["JobState"] in MAY_BE_THE_NODES and nodes not in ("(null)", "None") else ""


def _reasons(job: Mapping[str, str]) -> Sequence[Reason]:
    if not (nodes := _nodes(job)):
        return ()
    argv = ["env", "SLURM_TIME_FORMAT=%s", "scontrol", "--oneliner", "show", "node", nodes]
    return reasons_of(queries.ask(argv) or "")


def _unless_own(number: str, state: str, word: str) -> str:
    """Return the state of a job; Slurm's own word if the accounts say that this user has cancelled it."""
    if word != "CANCELLED" or not queries.is_launch_failure(state):
        return state
    answer = queries.ask(["sacct", "--noheader", "--allocations", "--parsable2", "--format=State", "--jobs", number])
    user = _USER.search(answer or "")  # a site without accounts gives no answer
    return word if user and int(user[1]) == os.getuid() and os.getuid() else state
