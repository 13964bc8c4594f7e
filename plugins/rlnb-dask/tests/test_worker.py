"""The name of each worker that srun starts."""

from __future__ import annotations

import sys

import dask
import pytest
from rlnb_dask import worker
from rlnb_dask.node import LEAVE_AFTER_S


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
