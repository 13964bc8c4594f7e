"""The answers of Grid Engine's commands about jobs: qstat(1), and accounting(5) of Son of Grid Engine 8.1.9."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from rlnb_dask.queues import queries

logger = logging.getLogger("rlnb_dask")
AWAY = re.compile("unable to (contact|send message to) qmaster|can't connect|connection refused", re.IGNORECASE)
"""What Grid Engine's commands print while its master does not answer."""
NODES_FAULTS = range(1, 12)
"""Values of ``failed`` for a job that a node could not start: 7 is "before prolog", 8 "in prolog", 11 "before job"."""
_FACT = re.compile(r"^(\w+)\s+(.*?)\s*$", re.MULTILINE)
_REASON = re.compile(r"^(error reason|scheduling info)[^:\n]*:\s*(.*(?:\n\s{8,}.*)*)", re.MULTILINE)
"""What ``qstat -j`` says about a job; each further line is indented."""
_PROLOG = re.compile(r"\b(prolog|pe_start)\b")
_PREFIX = re.compile(r"^\S+ \S+ \[\S+\]: ")
"""Date, time, user and process before the cause of an error state."""


def states_of(xml: str) -> Mapping[str, str] | None:
    """Return the state of each job, such as ``"qw"``, from the output of ``qstat -xml``; None if it is malformed."""
    return _pairs(xml, "JB_job_number", "state")


def ids_of(xml: str) -> Mapping[str, str] | None:
    """Return the id of each job by its name, from the output of ``qstat -xml``; None if it is malformed."""
    return _pairs(xml, "JB_name", "JB_job_number")


def _pairs(xml: str, key: str, value: str) -> Mapping[str, str] | None:
    """Return a value of each job by one of its other values."""
    try:
        jobs = ElementTree.fromstring(xml).iter("job_list")
    except ElementTree.ParseError as exc:
        logger.info("the queue's answer is malformed: %s", exc)
        return None
    return {job.findtext(key, ""): job.findtext(value, "") for job in jobs}


def cause_of(text: str) -> str:
    """Return why a job does not run, from the output of ``qstat -j``: the cause of its error state before all else."""
    reasons = dict(_REASON.findall(text))
    lines = (reasons.get("error reason") or reasons.get("scheduling info") or "").splitlines()
    return _PREFIX.sub("", lines[0].strip()) if lines else ""


def error_state_of(cause: str) -> str:
    """Return the state of a job that stays in the queue in an error state (Eqw), from its cause.

    A prolog, or a parallel environment's start procedure, fails on a node; a folder that is missing is the job's fault.
    """
    return queries.launch_failed(cause) if _PROLOG.search(cause) else queries.stuck(cause)


def account_of(text: str) -> str | None:
    """Return the final state of a job from the output of ``qacct -j``; None without an entry.

    Args:
        text: The output. ``failed`` is a number of accounting(5) and its meaning: 0 is an end of the job by itself, 37
            the end of its walltime, 100 a signal, and up to 11 a fault of the node before the job has begun.
    """
    facts = dict(_FACT.findall(text))
    if "exit_status" not in facts:
        return None
    failed = facts.get("failed", "0")
    status = int(facts["exit_status"].split()[0])
    if failed.split()[0] in ("0", "100"):
        return queries.done(status)
    meaning = failed.partition(":")[2].strip() or f"failure {failed}"
    if failed.split()[0].isdigit() and int(failed.split()[0]) in NODES_FAULTS:
        return queries.launch_failed(f"{facts.get('hostname') or 'its node'}: {meaning}")
    return f"ended by Grid Engine ({meaning})"
