"""The launchers of queues that have arrays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rlnb_dask.arrays.folder import ArrayFolder

import rlnb
from rlnb.launchers import ArrayLauncher
from rlnb.records.layout import JobDir


def problems(launcher: ArrayLauncher, count: int) -> list[str]:
    return [problem.what for problem in launcher.check_array(count)]


def test_an_array_of_grid_engine_has_one_node_for_each_run() -> None:
    assert problems(rlnb.sge(walltime="01:00:00"), 40) == []
    expected = ["An array of Grid Engine has one node for each run, not 2."]
    assert problems(rlnb.sge(walltime="01:00:00", nodes=2), 40) == expected


def test_an_array_is_not_larger_than_slurms_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\necho 'MaxArraySize            = 1001'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    launcher = rlnb.slurm(walltime="01:00:00", nodes=2)
    assert problems(launcher, 1000) == []
    assert problems(launcher, 1001) == ["An array of this Slurm has at most 1000 jobs, not 1001."]


def test_slurm_checks_an_array_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sbatch"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    limit = "sbatch: error: AssocMaxSubmitJobLimit"
    of_array = f'case "$*" in *--array=0-39*) printf "{limit}\\nJob violates\\n" >&2; exit 1 ;; esac'
    program.write_text(f"#!/bin/sh\n{of_array}\n")
    program.chmod(0o755)
    launcher = rlnb.slurm(walltime="01:00:00")
    assert problems(launcher, 39) == []
    refusal = "Slurm would refuse an array of 40 such jobs: Job violates: AssocMaxSubmitJobLimit"
    assert problems(launcher, 40) == [refusal]
    program.write_text("#!/bin/sh\nexit 1\n")
    assert problems(rlnb.slurm(walltime="02:00:00"), 40) == [], "it is the problem of each run"


def test_an_element_without_its_host_lives_while_the_queue_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 0 RUNNING\necho 1 PENDING\n")
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/removed\n')
    for name in ("squeue", "scancel"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = ArrayFolder.create(tmp_path)
    jobs = [tmp_path / "runs" / name / "jobs" / "0-train" for name in ("first", "second", "third")]
    for job in jobs:
        job.mkdir(parents=True)
    folder.write_members(1, jobs)
    folder.write_id(1, "17")
    launcher, own = rlnb.slurm(), rlnb.slurm().own_handle()
    handle = {**own, "created_s": 1.0, "array": str(folder.path)}
    assert launcher.alive({**own, "array": str(folder.path)}, jobs[2]), "its host lives"
    assert [launcher.alive(handle, job) for job in jobs] == [True, True, False]
    elsewhere = {**handle, "host": "elsewhere"}
    assert launcher.alive(elsewhere, jobs[2]) is None
    beat = JobDir(jobs[1]).host_alive
    beat.touch()
    launcher.cancel(elsewhere, jobs[1])
    assert not (tmp_path / "removed").exists(), "a host on another machine that still writes its heartbeat removes it"
    os.utime(beat, (1.0, 1.0))
    launcher.cancel(elsewhere, jobs[1])
    assert (tmp_path / "removed").read_text() == "-- 17_[1]\n"
    (tmp_path / "removed").unlink()
    for job in jobs:
        launcher.cancel(handle, job)
    assert (tmp_path / "removed").read_text() == "-- 17_[1]\n", "the agent of a running one finds the request itself"
    (folder.path / "1.id").write_text("--user=ann")
    with pytest.raises(rlnb.RlnbError, match="'--user=ann' is not the id of a job of slurm"):
        launcher.cancel(handle, jobs[1])
    assert (tmp_path / "removed").read_text() == "-- 17_[1]\n"


def test_an_array_whose_host_cannot_be_started_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    launcher = rlnb.slurm(walltime="01:00:00", python="/env/bin/python")
    with pytest.raises(FileNotFoundError, match="no-python"):
        launcher.submit_array([tmp_path / "runs" / "first" / "jobs" / "0-train"], at_once=None)
    assert [*(tmp_path / "arrays").iterdir()] == []
