"""The cores that a process may use, and what limits them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rlnb.machine import cores
from rlnb.machine.cores import Cores, available, bound


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 cores, of which this process may use 8."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(cores, "cgroup_cpus", lambda: None)


@pytest.mark.parametrize(
    ("environ", "number", "why"),
    [
        ({}, 8, "bound to 8 of 16 cores"),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "4", "SLURM_CPUS_ON_NODE": "6"}, 4, "SLURM_CPUS_PER_TASK=4"),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "6"}, 6, "SLURM_CPUS_ON_NODE=6"),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "12"}, 8, "bound to 8 of 16 cores"),
        ({"SLURM_CPUS_PER_TASK": "4"}, 8, "bound to 8 of 16 cores"),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "all"}, 8, "bound to 8 of 16 cores"),
        ({"PBS_JOBID": "7.server", "NCPUS": "2"}, 2, "NCPUS=2"),
        ({"LSB_JOBID": "7", "LSB_DJOB_NUMPROC": "3"}, 3, "LSB_DJOB_NUMPROC=3"),
        ({"SGE_O_HOST": "login", "NSLOTS": "1"}, 1, "NSLOTS=1"),
        ({"NSLOTS": "1"}, 8, "bound to 8 of 16 cores"),
    ],
)
def test_the_least_that_affinity_and_the_scheduler_allow_counts(environ: dict[str, str], number: int, why: str) -> None:
    assert available(environ) == Cores(number, why)


def test_a_quota_need_not_be_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "cgroup_cpus", lambda: 2.5)
    usable = available({})
    assert usable == Cores(2.5, "a quota of 2.5 cores")
    assert [usable.each(shares) for shares in (1, 2, 4)] == [2, 1, 1]


def test_a_real_affinity_is_seen() -> None:
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); "
        "from rlnb.machine import cores; print(cores.bound())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "1\n"
    assert bound() == 8
