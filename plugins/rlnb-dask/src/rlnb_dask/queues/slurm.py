"""Slurm: one job holds all nodes of a training (https://slurm.schedmd.com/sbatch.html)."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from rlnb import Problem
from rlnb_dask.queues.launcher import Argument, QueueLauncher, last_line

logger = logging.getLogger("rlnb_dask")

WAITING_OR_RUNNING = ("PENDING", "CONFIGURING", "RUNNING")
LIVING = (*WAITING_OR_RUNNING, "COMPLETING")
UNWANTED = {"CANCELLED", "FAILED"}
"""Somebody ended the job, or it could not run at all."""
ANSWER_S = 30
# A cancellation with a cause ends in it: "... CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***". A failed task is
# no cause here: an earlier line names the failure. The text before the stars depends on Slurm's version.
_FOLLOWS = re.compile(r"srun: |.*\*\*\* (STEP \S+ ON \S+ CANCELLED AT \S+|\S.* DUE TO TASK FAILURE) \*\*\*$")


class Slurm(QueueLauncher):
    """Runs each training as one job of Slurm. See :class:`QueueLauncher` for the arguments."""

    name = "slurm"
    title = "Slurm"
    jobqueue = "SLURM"
    single_job = True

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return arguments that have srun start a Dask worker on each node."""
        # Slurm ends a step more surely than the children of a script. From 22.05 on, srun does not take the cores of a
        # task from the job.
        cores = f" --cpus-per-task={self.cores}" if self.cpus_per_node else ""
        python = shlex.quote(self.python or sys.executable)
        return {
            "cores": nodes,
            "processes": nodes,
            "memory": f"{self.memory_gib * nodes:g}GiB",
            "python": f"srun --kill-on-bad-exit=1{cores} {python}",
            # Memory and tasks of each node are among the directives below.
            "job_directives_skip": ["-n 1", "--cpus-per-task", "--mem="],
        }

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives for the nodes of a job, with one task on each."""
        return [
            f"--nodes={nodes}",
            "--ntasks-per-node=1",
            "--no-requeue",  # rlnb resumes in a further job, so there are never two copies of one
            *([f"--cpus-per-task={self.cores}"] if self.cpus_per_node else []),
            *([f"--mem={self.memory_gib * 1024:.0f}M"] if self.memory_gib_per_node else []),
            *([f"--gpus-per-node={self.gpus_per_node}"] if self.gpus_per_node else []),
        ]

    def walltime_text(self) -> str | None:
        """Return the walltime as it is, since Slurm alone knows days."""
        return self.walltime

    def refusal(self) -> Problem | None:
        """Return Slurm's own objection to a trial submission of the job."""
        argv = ["sbatch", "--test-only"]
        try:
            process = subprocess.run(
                argv, input=self.job_script(), capture_output=True, text=True, timeout=ANSWER_S, check=False
            )
            objection = process.stderr.strip().removeprefix("allocation failure: ") if process.returncode else ""
        except subprocess.TimeoutExpired:
            objection = f"its controller does not answer within {ANSWER_S} s ({shlex.join(argv)})"
        if not objection:
            return None
        return Problem(
            what=f"Slurm would refuse this job: {objection}",
            fix="`sinfo` lists partitions and their limits. If it fails too, SLURM_CONF names no Slurm that runs.",
        )

    def look(self, ids: Sequence[str]) -> str | None:
        """Return squeue's line about the first of the jobs while it waits or runs."""
        argv = ["squeue", "-h", "-j", ",".join(ids), "-o", "%A %T (%r)"]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        line = process.stdout.strip()
        if process.returncode and "Invalid job id" not in process.stderr:
            logger.info("Slurm does not answer: %s", process.stderr.strip())  # it may again
            return None
        return line if line and line.split()[1] in WAITING_OR_RUNNING else ""

    def ended(self, ids: Sequence[str], within_s: float) -> Mapping[str, str]:
        """Return the final state of each job, for as long as Slurm's controller remembers it (MinJobAge)."""
        deadline = time.monotonic() + within_s
        while "COMPLETING" in (states := _states(ids)).values() and time.monotonic() < deadline:
            time.sleep(0.5)
        return {number: state for number, state in states.items() if state not in LIVING}

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether somebody cancelled the job in the queue, or it could not run at all."""
        return bool(UNWANTED & set(states))

    def reason(self, output: str) -> str:
        """Return the line of a job's output that tells why the job ended; an empty text where there is none.

        Args:
            output: The output. srun reports on its nodes in it. Once one node has failed, Slurm may or may not report
                the end of the step on the others: both reports only follow from an earlier line. A cancellation of
                the whole job does not.
        """
        return last_line("\n".join(line for line in output.splitlines() if not _FOLLOWS.match(line.strip())))


def _states(ids: Sequence[str]) -> Mapping[str, str]:
    """Return Slurm's state of each job that its controller remembers."""
    states = {}
    for number in ids:
        argv = ["scontrol", "--oneliner", "show", "job", number]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        pairs = dict(pair.split("=", 1) for pair in process.stdout.split() if "=" in pair)
        if "JobState" in pairs:
            states[number] = pairs["JobState"]
    return states
