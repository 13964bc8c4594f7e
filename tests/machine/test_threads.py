"""The variables with which the processes of a job compute, and the reason that a record gives."""

from __future__ import annotations

import os

import pytest

from rlnb.machine import cores, threads


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 cores without a quota."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(cores, "cgroup_cpus", lambda: None)


def number(environ: dict[str, str], **shares: int) -> tuple[str | None, str | None]:
    found = threads.variables(environ, **shares)
    return found.get("OMP_NUM_THREADS"), found.get("RLNB_THREADS")


def test_one_process_that_may_use_all_cores_leaves_the_number_to_openmp() -> None:
    assert threads.variables({}) == {}


@pytest.mark.parametrize(
    ("environ", "shares", "expected"),
    [
        ({}, {"ranks": 4}, ("4", "all 16 cores for 4 ranks")),
        ({}, {"at_once": 3}, ("5", "all 16 cores for 3 trainings at once")),
        ({}, {"ranks": 2, "at_once": 4}, ("2", "all 16 cores for 2 ranks for 4 trainings at once")),
        ({}, {"ranks": 32}, ("1", "all 16 cores for 32 ranks")),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "6"}, {}, ("6", "SLURM_CPUS_PER_TASK=6")),
        ({"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "6"}, {"ranks": 2}, ("3", "SLURM_CPUS_PER_TASK=6 for 2 ranks")),
        ({"OMP_NUM_THREADS": "7"}, {"ranks": 4}, (None, None)),
        ({"OMP_NUM_THREADS": ""}, {"ranks": 4}, ("4", "all 16 cores for 4 ranks")),
    ],
)
def test_each_process_has_its_share_of_the_cores(
    environ: dict[str, str], shares: dict[str, int], expected: tuple[str | None, str | None]
) -> None:
    assert number(environ, **shares) == expected


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_threads_wait_as_the_user_says(name: str) -> None:
    assert threads.short_waits({name: "ACTIVE"}) == {}
    assert threads.short_waits({}) == threads.SHORT


def test_the_reason_names_what_has_decided() -> None:
    assert threads.reason(16, {}) == "all 16 cores"
    assert threads.reason(4, {"OMP_NUM_THREADS": "4", "RLNB_THREADS": "a quota of 4 cores"}) == "a quota of 4 cores"
    assert threads.reason(4, {"OMP_NUM_THREADS": "4"}) == "OMP_NUM_THREADS=4"
    assert threads.reason(4, {}) == "the library's or the task's own choice"
    assert threads.reason(4, {"OMP_NUM_THREADS": "8"}) == "the library's or the task's own choice"
