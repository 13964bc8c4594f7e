"""The launchers of queues that have arrays."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlnb_dask.arrays.folder import ArrayFolder

import rlnb


def problems(launcher: rlnb.ArrayLauncher, count: int) -> list[str]:
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


def test_an_element_without_its_host_lives_while_the_queue_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 0 RUNNING\necho 1 PENDING\n")
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/removed\n')
    for name in ("squeue", "scancel"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = ArrayFolder.create(tmp_path)
    jobs = [tmp_path / name for name in ("first", "second", "third")]
    folder.write_members(1, jobs)
    folder.write_id(1, "17")
    launcher, own = rlnb.slurm(), rlnb.slurm().own_handle()
    handle = {**own, "created_s": 1.0, "array": str(folder.path)}
    assert launcher.alive({**own, "array": str(folder.path)}, jobs[2]), "its host lives"
    assert [launcher.alive(handle, job) for job in jobs] == [True, True, False]
    assert launcher.alive({**handle, "host": "elsewhere"}, jobs[2]) is None
    for job in jobs:
        launcher.cancel(handle, job)
    assert (tmp_path / "removed").read_text() == "17_[1]\n", "the agent of a running one finds the request itself"
