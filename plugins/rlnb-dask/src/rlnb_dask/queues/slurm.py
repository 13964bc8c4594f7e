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

WAITING_OR_RUNNING = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED")
LIVING = (*WAITING_OR_RUNNING, "COMPLETING")
UNWANTED = {"CANCELLED", "FAILED"}
"""States of a job that was cancelled in the queue, or that could not run at all."""
ANSWER_S = 30
_CORES = re.compile(r"^(-c|--cpus-per-)", re.MULTILINE)
_MEMORY = re.compile(r"^--mem", re.MULTILINE)
# Slurm appends the cause to a cancellation: "... CANCELLED AT 2026-11-23T04:42:55 DUE TO TIME LIMIT ***". TASK FAILURE
# is not a useful cause, because an earlier line names the failure. The text before the stars varies with the version.
_FOLLOWS = re.compile(r"srun: |.*\*\*\* (STEP \S+ ON \S+ CANCELLED AT \S+|\S.* DUE TO TASK FAILURE) \*\*\*$")


class Slurm(QueueLauncher):
    """Runs each training as one job of Slurm. See :class:`QueueLauncher` for the arguments."""

    name = "slurm"
    title = "Slurm"
    jobqueue = "SLURM"
    single_job = True

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return arguments that make srun start a Dask worker on each node."""
        # Slurm ends a step more reliably than the children of a script. Since 22.05, srun does not inherit the job's
        # --cpus-per-task.
        cores = f" --cpus-per-task={self.cores}" if self._with_cores else ""
        python = shlex.quote(self.python or sys.executable)
        return {
            "cores": nodes,
            "processes": nodes,
            "memory": f"{self.memory_gib * nodes:g}GiB",
            "python": f"srun --kill-on-bad-exit=1{cores} {python}",
            # own_directives sets the memory and the tasks of each node.
            "job_directives_skip": ["-n 1", "--cpus-per-task", "--mem="],
        }

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives for the nodes of a job, with one task per node."""
        return [
            f"--nodes={nodes}",
            "--ntasks-per-node=1",
            "--no-requeue",  # rlnb resumes in a new job; a requeued job would be a second copy
            *([f"--cpus-per-task={self.cores}"] if self._with_cores else []),
            *([f"--mem={self.memory_gib * 1024:.0f}M"] if self._with_memory else []),
            *([f"--gpus-per-node={self.gpus_per_node}"] if self.gpus_per_node else []),
        ]

    # Slurm's own default is one core for each task, and often memory by cores. Slurm refuses a second option for cores
    # or memory, so a directive such as --cpus-per-gpu=8 replaces the default.

    @property
    def _with_cores(self) -> bool:
        return bool(self.cpus_per_node or (self.gpus_per_node and not _CORES.search(self.free_text())))

    @property
    def _with_memory(self) -> bool:
        return bool(self.memory_gib_per_node or (self.gpus_per_node and not _MEMORY.search(self.free_text())))

    def walltime_text(self) -> str | None:
        """Return the walltime unchanged, because Slurm's format has days."""
        return self.walltime

    def refusal(self) -> Problem | None:
        """Return Slurm's objection to a trial submission of the job; None if there is none."""
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
            fix="`sinfo` lists partitions and their limits. If it fails too, SLURM_CONF names no running Slurm.",
        )

    def look(self, ids: Sequence[str]) -> str | None:
        """Return squeue's line about the jobs while the first of them waits or runs."""
        argv = ["squeue", "-h", "-j", ",".join(ids), "-o", "%A %T (%r)"]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        line = process.stdout.strip()
        if process.returncode and "Invalid job id" not in process.stderr:
            logger.info("Slurm does not answer: %s", process.stderr.strip())  # the controller may answer later
            return None
        return line if line and line.split()[1] in WAITING_OR_RUNNING else ""

    def waits(self, line: str) -> str:
        """Return Slurm's state and reason of a job that does not run: ``"PENDING (JobHeldAdmin)"``, ``"suspended"``."""
        _, _, state_and_reason = line.partition(" ")
        state = state_and_reason.partition(" ")[0]
        if state == "SUSPENDED":
            return "suspended"
        return state_and_reason if state in WAITING_OR_RUNNING and state != "RUNNING" else ""

    def ended(self, ids: Sequence[str], within_s: float) -> Mapping[str, str]:
        """Return the final state of each ended job that Slurm's controller still remembers (MinJobAge)."""
        deadline = time.monotonic() + within_s
        while "COMPLETING" in (states := _states(ids)).values() and time.monotonic() < deadline:
            time.sleep(0.5)
        return {number: state for number, state in states.items() if state not in LIVING}

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job was cancelled in the queue, or could not run at all."""
        return bool(UNWANTED & set(states))

    def reason(self, output: str) -> str:
        """Return the line of a job's output that gives the cause of its end; an empty text if there is none.

        Args:
            output: The output. After a node has failed, it may contain srun's and Slurm's reports about the step on
                the other nodes. These reports are consequences of an earlier line, so they are skipped. A
                cancellation of the whole job is a cause, and is kept.
        """
        return last_line("\n".join(line for line in output.splitlines() if not _FOLLOWS.match(line.strip())))


def _states(ids: Sequence[str]) -> Mapping[str, str]:
    """Return the state of each job that Slurm's controller remembers."""
    states = {}
    for number in ids:
        argv = ["scontrol", "--oneliner", "show", "job", number]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        pairs = dict(pair.split("=", 1) for pair in process.stdout.split() if "=" in pair)
        if "JobState" in pairs:
            states[number] = pairs["JobState"]
    return states
