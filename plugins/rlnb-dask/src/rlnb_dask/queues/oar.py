"""OAR: each node of a training is a job, sized by a resource path (https://oar.imag.fr).

The sources are the manual pages oarsub(1) and oarstat(1) of OAR 2.5. Not tested on an installation.
"""

from __future__ import annotations

import json
import logging
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlnb import Problem
from rlnb_dask.queues import queries
from rlnb_dask.queues.launcher import Argument, QueueLauncher

logger = logging.getLogger("rlnb_dask")
STREAMS = (("-O", "stdout"), ("-E", "stderr"))
ENDED = ("Terminated", "Error", "toError")
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
        jobs = self._jobs(ids)
        return None if jobs is None else {n: state for n, (state, _) in jobs.items() if state not in ENDED}

    def final(self, number: str) -> str | None:
        """Return the final state of a job, with OAR's message about it."""
        state, message = (self._jobs([number]) or {}).get(number, ("", ""))
        return f"{state} ({message})" if message else state or None

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job ended in OAR's state for an error, which another job would meet too."""
        return super().unwanted(states) or any(state.startswith(("Error", "toError")) for state in states)

    def _jobs(self, ids: Sequence[str]) -> Mapping[str, tuple[str, str]] | None:
        options = (option for number in ids for option in ("-j", number))
        output = queries.ask(["oarstat", "-J", *options])
        return None if output is None else jobs_of(output)


def jobs_of(text: str) -> Mapping[str, tuple[str, str]] | None:
    """Return each job's state and OAR's message, from the output of ``oarstat -J``; None if it is malformed."""
    try:
        jobs = json.loads(text or "{}")
    except json.JSONDecodeError as exc:
        logger.info("the queue's answer is malformed: %s", exc)
        return None
    return {number: (str(job.get("state", "")), str(job.get("message") or "")) for number, job in jobs.items()}
