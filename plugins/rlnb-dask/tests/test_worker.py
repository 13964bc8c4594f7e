"""The name of each worker that srun starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import dask
import pytest
from rlnb_dask import worker
from rlnb_dask.node import LEAVE_AFTER_S

import rlnb


@pytest.mark.parametrize(("tasks", "name"), [("2", "cluster-0-1"), ("1", "cluster-0")])
def test_each_of_several_tasks_has_its_own_name(monkeypatch: pytest.MonkeyPatch, tasks: str, name: str) -> None:
    from distributed.cli import dask_worker

    calls: list[tuple[list[str], object]] = []
    monkeypatch.setitem(sys.modules, "setproctitle", None)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", tasks)
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setattr(sys, "argv", ["worker", "tls://a:1", "--name", "cluster-0"])
    monkeypatch.setattr(dask_worker, "main", lambda: calls.append((sys.argv, dask.config.get(LEAVE_AFTER_S))))
    with dask.config.set({}):
        before = dict(dask.config.config)
        try:
            worker.main()
        finally:
            dask.config.config.clear()
            dask.config.config.update(before)
    assert calls == [(["worker", "tls://a:1", "--name", name], worker.LEAVE_S)]


def test_a_worker_leaves_at_once_if_its_host_has_been_silent_for_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not worker.host_is_gone(tmp_path), "a host that has not begun to beat"
    beat = tmp_path / "host.alive"
    beat.touch()
    assert not worker.host_is_gone(tmp_path)
    os.utime(beat, (beat.stat().st_mtime - 75.0,) * 2)
    assert worker.host_is_gone(tmp_path)
    monkeypatch.setenv(worker.JOB, str(tmp_path))
    with pytest.raises(SystemExit, match="The host of this training is gone"):
        worker.main()


def test_the_job_names_its_folder_to_its_workers() -> None:
    for launcher in (rlnb.slurm(walltime="01:00:00"), rlnb.pbs(walltime="01:00:00", prologue=["module load cuda"])):
        lines = launcher.job_arguments(1, Path("/runs/a b"))["job_script_prologue"]
        assert lines[-1] == f"export {worker.JOB}='/runs/a b'"
        assert worker.JOB not in launcher.job_script()
