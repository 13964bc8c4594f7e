"""HTCondor: each node of a training is a job, and directives are assignments (https://htcondor.org).

The sources are the manual's pages of condor_q and condor_history (-af), and "Job ClassAd Attributes" (JobStatus,
HoldReasonCode). Not tested on an installation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlnb_dask.queues import ids, queries
from rlnb_dask.queues.launcher import Argument, QueueLauncher

STATUS = {"1": "idle", "2": "running", "5": "held", "6": "transferring output", "7": "suspended"}
"""Values of JobStatus; 3 is removed, and 4 is completed."""
HELD, BY_A_PERSON = "5", "1"
"""JobStatus of a held job, and the HoldReasonCode of a job that a person holds, and may release."""
NODES_FAULTS = ("6", "19", "21", "45")
"""HoldReasonCodes of a job that its machine could not start: it could not run the program, its hook before the job has
failed, its policy holds the job, or its containers do not work."""
IN_QUEUE = ("ClusterId", "ProcId", "JobStatus", "HoldReasonCode", "HoldReason", "LastRemoteHost")
IN_HISTORY = ("ExitBySignal", "ExitCode", "ExitSignal", "RemoveReason")


class HTCondor(QueueLauncher):
    """Runs each node of a training as a job of HTCondor. See :class:`QueueLauncher` for the arguments.

    HTCondor has no partitions, accounts or walltimes. ``directives`` are assignments, such as ``["+Project = rl"]``.
    With a ``walltime`` the training itself stops in time. Each node is a claim of its own, and a job gets no variable
    of this machine unless a directive, or a line of ``prologue``, sets it.
    """

    name = "htcondor"
    title = "HTCondor"
    jobqueue = "HTCondor"
    job_ids = ids.HTCONDOR
    waiting = "idle|held|suspended"
    needs_walltime = False
    outputs = ("worker-{}.err", "worker-{}.out")

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the cores and the disk, and None for the arguments that HTCondor does not have."""
        return {"queue": None, "account": None, "walltime": None, "disk": "1GiB", "cores": self.cores}

    def extra_directives(self, nodes: int) -> Mapping[str, str]:
        """Return the site's and the user's assignments, and the number of GPUs per node."""
        pairs = (directive.partition("=") for directive in self.directives)
        assignments = {name.strip(): value.strip() for name, _, value in pairs}
        gpus = {"request_gpus": str(self.gpus_per_node)} if self.gpus_per_node else {}
        return {**dict(self.site("job-extra-directives") or {}), **assignments, **gpus}

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the state of each job that waits or runs. HTCondor holds a job that it cannot run."""
        jobs = self._queue(ids)
        return None if jobs is None else {n: state for n, (state, never) in jobs.items() if not never}

    def final(self, number: str) -> str | None:
        """Return the reason for which HTCondor holds a job, or its state in the history."""
        state, never = (self._queue([number]) or {}).get(number, ("", False))
        if never:
            return state if queries.is_launch_failure(state) else queries.stuck(state)
        output = queries.ask(["condor_history", number, "-limit", "1", "-af:t", *IN_HISTORY])
        return final_of(output or "")

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job failed by itself, is held, or was removed; a preempted job stays in the queue."""
        return super().unwanted(states) or any(state.startswith("removed") for state in states)

    def _queue(self, ids: Sequence[str]) -> Mapping[str, tuple[str, bool]] | None:
        output = queries.ask(["condor_q", *ids, "-af:t", *IN_QUEUE])
        return None if output is None else jobs_of(output)


def jobs_of(text: str) -> Mapping[str, tuple[str, bool]]:
    """Return the state of each job, and whether HTCondor will never run it, from ``condor_q -af:t`` of IN_QUEUE."""
    jobs = {}
    for row in (line.split("\t") for line in text.splitlines() if line.count("\t") >= 4):
        cluster, process, status, code, reason = (value.strip() for value in row[:5])
        if status in STATUS:
            held = status == HELD
            state = f"held: {reason}" if held else STATUS[status]
            if held and code in NODES_FAULTS:
                host = row[5].strip().rpartition("@")[2] if len(row) > 5 else "undefined"
                state = queries.launch_failed(f"{'its node' if host in ('', 'undefined') else host}: {state}")
            jobs[f"{cluster}.{process}"] = (state, held and code != BY_A_PERSON)
    return jobs


def final_of(text: str) -> str | None:
    """Return the final state of a job from ``condor_history -af:t`` of IN_HISTORY; None without an entry."""
    values = [value.strip() for value in text.splitlines()[0].split("\t")] if text.strip() else []
    if len(values) < 4:
        return None
    by_signal, code, number, removal = values
    if by_signal == "true" and number.isdigit():
        return queries.killed(int(number))
    if code.isdigit():
        return queries.done(int(code))
    return f"removed ({removal})" if removal != "undefined" else None
