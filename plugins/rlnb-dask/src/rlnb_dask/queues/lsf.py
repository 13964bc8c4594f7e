"""LSF: each node of a training is a job, and the walltime has no seconds field.

The sources are IBM's pages of bsub (-M, -W, -gpu), bjobs (-o) and "Resource requirement strings" (rusage, LSF 10.1).
Not tested on an installation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from rlnb_dask.queues import jobqueue, queries
from rlnb_dask.queues.launcher import Argument, QueueLauncher
from rlnb_dask.queues.walltime import clock_of, seconds_of

FORMAT = "jobid stat exit_code exit_reason exec_host delimiter='|'"
ENDED = ("DONE", "EXIT", "ZOMBI")
NODES_FAULTS = ("TERM_PRE_EXEC_FAIL", "TERM_CWD_NOTEXIST")
"""Exit reasons of a job that its host could not start: its pre-execution command failed, or it lacks a folder."""
BY_A_PERSON = ("TERM_OWNER", "TERM_FORCE_OWNER", "TERM_ADMIN", "TERM_FORCE_ADMIN")
"""Exit reasons of a job that a person has ended with bkill."""
UNITS = {"kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5, "eb": 6}
"""Powers of 1024 of the units of LSF_UNIT_FOR_LIMITS."""


class Lsf(QueueLauncher):
    """Runs each node of a training as a job of LSF. See :class:`QueueLauncher` for the arguments."""

    name = "lsf"
    title = "LSF"
    jobqueue = "LSF"
    outputs = ("*-{}.err", "*-{}.out")
    waiting = r"PEND|[PSU]+SUSP"
    away = re.compile("LSF is down|cannot connect to LSF|batch daemon not responding", re.IGNORECASE)

    def own_arguments(self, nodes: int) -> Mapping[str, Argument]:
        """Return the project instead of an account, the cores, and the memory in bytes."""
        return {
            "project": self.account,
            "account": None,
            "ncpus": self.site_size("ncpus") or self.cores,
            "mem": self._memory,
            "job_directives_skip": ["-M "],  # dask-jobqueue counts by 1000, LSF by 1024
        }

    @property
    def _memory(self) -> int:
        """Memory of each node, in bytes."""
        return int(self.site_size("mem") or self.memory_gib * 2**30)

    def own_directives(self, nodes: int) -> Sequence[str]:
        """Return the directives for the memory and the GPUs, and the one that forbids a second copy.

        ``-M`` is only a limit, of each process by default, so the memory is reserved by ``rusage`` as well.
        """
        unit = self.site("lsf-units") or detected_unit()
        limit = f"-M {math.ceil(self._memory / 1024 ** UNITS[unit])}"
        reserves = "rusage" not in self.free_text()
        # Without LSF_UNIT_FOR_LIMITS, -M counts KB but rusage counts MB.
        reserved = math.ceil(self._memory / 1024 ** max(UNITS[unit], UNITS["mb"]))
        gpus = [f"-gpu num={self.gpus_per_node}:j_exclusive=yes"] if self.gpus_per_node else []
        return [limit, *([f'-R "rusage[mem={reserved}/host]"'] if reserves else []), "-rn", *gpus]

    def walltime_text(self) -> str | None:
        """Return the walltime as hours and minutes."""
        seconds = seconds_of(self.walltime)
        return self.walltime if seconds is None else "{:02}:{:02}".format(*clock_of(seconds))

    def living(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the state of each job that waits or runs."""
        jobs = self._jobs(ids)
        return None if jobs is None else {n: job[0] for n, job in jobs.items() if job[0] not in ENDED}

    def final(self, number: str) -> str | None:
        """Return the final state of a job, which LSF remembers for an hour (CLEAN_PERIOD)."""
        return final_of((self._jobs([number]) or {}).get(number, ()))

    def unwanted(self, states: Sequence[str]) -> bool:
        """Return whether a job failed by itself, or a person has ended it with bkill."""
        return super().unwanted(states) or any(reason in state for state in states for reason in BY_A_PERSON)

    def _jobs(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]] | None:
        output = queries.ask(["bjobs", "-a", "-noheader", "-o", FORMAT, *ids], unless=("is not found",))
        return None if output is None else jobs_of(output)


def jobs_of(text: str) -> Mapping[str, Sequence[str]]:
    """Return state, exit code, exit reason and host of each job from the output of ``bjobs -noheader -o``."""
    rows = (line.strip().split("|") for line in text.splitlines() if line.count("|") >= 3)
    return {number: rest for number, *rest in rows}


def final_of(job: Sequence[str]) -> str | None:
    """Return the final state of a job from its state, exit code, exit reason and host; None if it has not ended.

    Args:
        job: The values. A reason, such as ``TERM_RUNLIMIT: job killed after reaching LSF run time limit``, is
            given if LSF or a person has ended the job, and the hyphen stands for none.
    """
    if not job or job[0] not in ENDED:
        return None
    _, code, reason = job[:3]
    if reason.strip().startswith(NODES_FAULTS):
        host = job[3].strip() if len(job) > 3 else "-"
        return queries.launch_failed(f"{'its node' if host in ('', '-') else host}: {reason.strip()}")
    if reason.strip() not in ("", "-"):
        return f"ended by LSF ({reason.strip()})"
    return queries.done(int(code) if code.strip().isdigit() else 0)


def detected_unit() -> str:
    """Return the unit of this site's memory limits, from its ``lsf.conf``."""
    return str(jobqueue.module("lsf").lsf_detect_units()).lower()
