"""OAR: each node of a training is a job, sized by a resource path (https://oar.imag.fr).

The sources are the manual pages oarsub(1) and oarstat(1) of OAR 2.5, and the answers of OAR 2.5.9.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.plugin import Problem
from rlnb_dask.queues import queries
from rlnb_dask.queues.launcher import Argument, QueueLauncher

logger = logging.getLogger("rlnb_dask")
STREAMS = (("-O", "stdout"), ("-E", "stderr"))
ENDED = ("Terminated", "Error", "toError")
DELETED = "deleted from the queue (oardel)"
CAUSES = {
    "WALLTIME": "ended by OAR (walltime)",
    "BESTEFFORT_KILL": "ended by OAR (besteffort)",
    "FRAG_JOB_REQUEST": DELETED,
}
"""The end of a job in state Error, by the type of an event. OAR's own requests are of the last type too."""
NODES_FAULTS = {
    "PING_CHECKER_NODE_SUSPECTED": "it does not answer",
    "CPUSET_ERROR": "the cpuset of the job cannot be made",
    "PROLOGUE_ERROR": "the prologue has failed",
    "CANNOT_WRITE_NODE_FILE": "the list of nodes cannot be written",
    "CANNOT_WRITE_PID_FILE": "the id of the job's process cannot be written",
    "CANNOT_CREATE_TMP_DIRECTORY": "no temporary folder can be made",
    "SSH_TRANSFER_TIMEOUT": "it does not answer in time",
    "BAD_HASHTABLE_DUMP": "the description of the job has not arrived whole",
    "LAUNCHING_OAREXEC_TIMEOUT": "oarexec does not start in time",
}
"""The cause in words, by the type of an event of OAR's for a job that its node could not start. Such a node becomes
"Suspected"."""
_LAST_WORDS = re.compile(r"\[ERROR\] Oarsub failed|LINE \d+:|\)?$")
"""Beginnings of the lines that follow the cause of a refusal."""
MEMORY_PROPERTY = "memory-per-core-property-name"


class Oar(QueueLauncher):
    """Runs each node of a training as a job of OAR. See :class:`QueueLauncher` for the arguments."""

    name = "oar"
    title = "OAR"
    jobqueue = "OAR"
    waiting = "Waiting|Hold|Suspended|Resuming"
    outputs = ("OAR.rlnb.{}.stderr", "OAR.rlnb.{}.stdout")

    def job_arguments(self, nodes: int, log_directory: Path | None = None) -> dict[str, Argument]:
        """Return the dask-jobqueue arguments of a job, with the files of its output, which dask-jobqueue leaves out."""
        arguments = super().job_arguments(nodes, log_directory)
        if log_directory:
            files = ((option, f"{log_directory}/OAR.rlnb.%jobid%.{kind}") for option, kind in STREAMS)
            directives = [*self.extra_directives(nodes), *(f"{option} {shlex.quote(path)}" for option, path in files)]
            arguments["job_extra_directives"] = directives
        return arguments

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, and the resources of a node."""
        # A GPU comes with the cores beside it. /core= below it is a number for each GPU, and takes fewer.
        cores = f"/core={math.ceil(self.cpus_per_node / (self.gpus_per_node or 1))}" if self.cpus_per_node else ""
        node = f"/gpu={self.gpus_per_node}{cores}" if self.gpus_per_node else f"/core={self.cores}"
        has_name = self.site(MEMORY_PROPERTY) and (self.memory_gib_per_node or not self.gpus_per_node)
        memory = None if has_name else "not_applicable"  # without a name, dask-jobqueue warns of every job
        return {
            "project": self.account,
            "account": None,
            "cores": self.cores,  # dask-jobqueue divides the memory by it
            "memory_per_core_property_name": memory,
            "resource_spec": self.site_size("resource-spec") or f"/nodes=1{node}",
        }

    def size_problems(self) -> Sequence[Problem]:
        """Return the memory that no property of the site's nodes stands for."""
        if not self.memory_gib_per_node or self.site(MEMORY_PROPERTY) or "mem" in self.free_text():
            return []
        what = f"memory_gib_per_node={self.memory_gib:g}, but OAR has no option for memory: it comes with the cores."
        fix = f"Use cpus_per_node, or {MEMORY_PROPERTY} in jobqueue.yaml with the name of the site's property."
        return [Problem(what=what, fix=fix)]

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the state of each job that waits or runs."""
        options = (option for number in ids for option in ("-j", number))
        output = queries.ask(["oarstat", "-J", *options])
        jobs = None if output is None else jobs_of(output)
        return None if jobs is None else {n: job.state for n, job in jobs.items() if job.state not in ENDED}

    def final(self, number: str) -> str | None:
        """Return the final state of a job, from its exit status and OAR's events."""
        job = (jobs_of(queries.ask(["oarstat", "-f", "-J", "-j", number]) or "") or {}).get(number)
        return job.end if job and job.state in ENDED else None

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job was deleted, or ended in OAR's error state. Another job would end like it."""
        return super().unwanted(states) or any(state.startswith(("Error", "toError", DELETED)) for state in states)

    def reason(self, output: str) -> str:
        """Return the line of an output that gives a cause, without the lines that oarsub appends to its objection."""
        lines = (line for line in output.splitlines() if not _LAST_WORDS.match(line.strip()))
        return super().reason("\n".join(lines))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job as oarstat shows it."""

    state: str
    message: str
    exit_code: int | None
    """Its status as of wait(2); None if it has not ended by itself."""
    events: Sequence[str]
    """Types of OAR's events, the oldest first."""
    hosts: Sequence[str] = ()
    """Names of its nodes."""

    @property
    def end(self) -> str:
        """How the job has ended, in words."""
        if self.state == "Terminated" and self.exit_code is not None:
            if os.WIFSIGNALED(self.exit_code):
                return queries.killed(os.WTERMSIG(self.exit_code))
            return queries.done(os.WEXITSTATUS(self.exit_code))
        cause = next((text for event, text in CAUSES.items() if event in self.events), "")
        fault = next((text for event, text in NODES_FAULTS.items() if event in self.events), "")
        if fault and not cause:
            return queries.launch_failed(f"{', '.join(self.hosts) or 'its node'}: {fault}")
        return cause or (f"{self.state} ({self.message})" if self.message else self.state)


def jobs_of(text: str) -> Mapping[str, Job] | None:
    """Return each job from the output of ``oarstat -J``, which has events only with ``-f``; None if it is malformed."""
    try:
        jobs = json.loads(text or "{}")
    except json.JSONDecodeError as exc:
        logger.info("the queue's answer is malformed: %s", exc)
        return None
    if not isinstance(jobs, dict):
        logger.info("the queue's answer is not about jobs: %s", text)
        return None
    return {
        number: Job(
            state=str(job.get("state", "")),
            message=str(job.get("message") or ""),
            exit_code=_number(job.get("exit_code")),
            events=[str(event.get("type", "")) for event in job.get("events") or ()],
            hosts=[str(host) for host in job.get("assigned_network_address") or ()],
        )
        for number, job in jobs.items()
    }


def _number(value: object) -> int | None:
    """Return a whole number, which may be written as text; None for anything else."""
    text = str(value)
    return int(text) if text.isdecimal() else None
