"""PBS Professional and OpenPBS: each node of a training is a job of one chunk (https://www.openpbs.org).

The sources are the manual pages qsub(1B) and qstat(1B) of OpenPBS. Torque, which has the same commands, knows neither
chunks (``select``) nor ``qstat -x``. Not tested on an installation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rlnb_dask.queues import queries
from rlnb_dask.queues.launcher import Argument, QueueLauncher

FINISHED = ("F", "X")
NODES_FAULTS = {
    -1: "it could not start the job",
    -2: "it could not start the job",
    -3: "it could not start the job, so that another node should",
    -4: "its MoM was restarted",
    -5: "its MoM was restarted",
    -6: "its MoM was restarted",
    -14: "it has lost another node of the job",
    -16: "a hook of the site has refused the job",
    -17: "a hook of the site has refused the job",
    -20: "its MoM did not answer",
    -22: "a hook of the site has failed",
}
"""Exit statuses of jobs that a node could not start, such as after a prologue or a hook that failed
(JOB_EXEC_FAIL1 ... in OpenPBS's job.h). With others, such as an unknown user, no node would start the job."""
_UNKNOWN = ("Unknown Job Id", "has finished")
_JOB = re.compile(r"^Job Id: (\d+)", re.MULTILINE)
_FACT = re.compile(r"^ {4}(\w+) = (.*)$", re.MULTILINE)


class Pbs(QueueLauncher):
    """Runs each node of a training as a job of PBS Professional or OpenPBS, not of Torque.

    See :class:`QueueLauncher` for the arguments.
    """

    name = "pbs"
    title = "PBS"
    jobqueue = "PBS"
    outputs = ("{}.*ER", "{}.*OU", "rlnb.e{}", "rlnb.o{}")
    waiting = r"[QHWS]\b"
    away = re.compile("cannot connect to server|connection refused", re.IGNORECASE)

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the chunk that describes a node."""
        gpus = f":ngpus={self.gpus_per_node}" if self.gpus_per_node else ""
        chunk = f"select=1:ncpus={self.cores}:mem={self.memory_gib * 1024:.0f}mb{gpus}"
        return {"resource_spec": self.site_size("resource-spec") or chunk}

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the state and PBS's comment of each job that waits or runs."""
        output = queries.ask(["qstat", "-f", *ids], unless=_UNKNOWN)
        jobs = {} if output is None else jobs_of(output)
        states = {number: (facts.get("job_state", ""), facts.get("comment", "")) for number, facts in jobs.items()}
        living = {number: f"{state} ({why})" if why else state for number, (state, why) in states.items()}
        return None if output is None else {n: text for n, text in living.items() if states[n][0] not in FINISHED}

    def final(self, number: str) -> str | None:
        """Return a job's state from PBS's history, if the site keeps one (``job_history_enable``)."""
        output = queries.ask(["qstat", "-x", "-f", number], unless=_UNKNOWN)
        return final_of(jobs_of(output or "").get(number, {}))


def jobs_of(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return the attributes of each job from the output of ``qstat -f``, whose long lines go on after a tab."""
    _, *parts = _JOB.split(text.replace("\n\t", ""))
    return {number: dict(_FACT.findall(part)) for number, part in zip(parts[::2], parts[1::2], strict=True)}


def final_of(facts: Mapping[str, str]) -> str | None:
    """Return the final state of a job from its attributes; None without an exit status.

    Args:
        facts: The attributes. ``Exit_status`` is negative if PBS could not start the job, and above 256 after a signal
            (PBS Professional Administrator's Guide, "Job Exit Codes").
    """
    if facts.get("job_state") not in FINISHED or not facts.get("Exit_status", "").lstrip("-").isdigit():
        return None
    status = int(facts["Exit_status"])
    if status in NODES_FAULTS:
        node = facts.get("exec_host", "").partition("/")[0] or "its node"
        return queries.launch_failed(f"{node}: {facts.get('comment') or NODES_FAULTS[status]}, exit status {status}")
    if status < 0:
        return queries.stuck(facts.get("comment") or f"PBS could not start it, exit status {status}")
    return queries.killed(status - 256) if status > 256 else queries.done(status)
