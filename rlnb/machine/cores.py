"""How many CPU cores this process may use, and what says so."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlnb.machine import cgroups

SCHEDULERS: Mapping[str, tuple[str, ...]] = {
    "SLURM_JOB_ID": ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"),
    "PBS_JOBID": ("NCPUS",),
    "LSB_JOBID": ("LSB_DJOB_NUMPROC",),
    "SGE_O_HOST": ("NSLOTS",),
}
"""Variables with the cores of a job, by a variable that only jobs of that scheduler have; the first one that is set
counts. A scheduler need not bind a job to its cores."""


@dataclass(frozen=True, slots=True)
class Cores:
    """The CPU cores that a process may use."""

    number: float
    """Their number, which a quota need not make whole."""
    why: str
    """What limits them, e.g. ``"SLURM_CPUS_PER_TASK=4"``."""

    def each(self, shares: int) -> int:
        """Return the whole cores of each of several processes that share them, at least 1."""
        return max(1, int(self.number / shares))


def bound() -> int:
    """Return the number of cores that this process can run on, which is how many threads OpenMP starts by itself."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available(environ: Mapping[str, str] = os.environ) -> Cores:
    """Return the cores that this process may use: the fewest that its affinity, a quota or a job's scheduler allows.

    Args:
        environ: Environment in which a scheduler has started the job.
    """
    return min(_limits(environ), key=lambda cores: cores.number)


def _limits(environ: Mapping[str, str]) -> Iterator[Cores]:
    number, total = bound(), os.cpu_count() or 1
    yield Cores(number, f"all {number} cores" if number == total else f"bound to {number} of {total} cores")
    if quota := cgroups.cpus():
        yield Cores(quota, f"a quota of {quota:g} core{'' if quota == 1 else 's'}")
    for job, names in SCHEDULERS.items():
        name = next((name for name in names if environ.get(name, "").isdecimal()), None)
        if job in environ and name and int(environ[name]):
            yield Cores(int(environ[name]), f"{name}={environ[name]}")
