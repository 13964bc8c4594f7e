"""Many small runs on a few nodes of a real Slurm: the limit of parallel runs holds, and no run is lost."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import processes, wait_until

import rlnb

RUNS, AT_ONCE = 40, 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="optuna is not installed here"),
]


def test_forty_runs_complete_on_four_nodes(slurm: Any, clean: Path) -> None:
    sweep = rlnb.sweep(
        "Echo",
        "echo",
        space={"agent.goal": (0.5, 2.0)},
        n_trials=RUNS,
        parallel=AT_ONCE,
        name="many",
        max_iterations=3,
        launcher=rlnb.slurm(walltime="00:10:00"),
    )
    at_once = 0
    deadline = time.monotonic() + 400
    while (ended := len(rlnb.runs(tag="sweep:many", state="completed"))) != RUNS:
        at_once = max(at_once, len(slurm.jobs()))
        assert time.monotonic() < deadline, f"{ended} of {RUNS} runs have ended"
        time.sleep(1.0)
    sweep.wait(60)
    assert AT_ONCE // 2 <= at_once <= 2 * AT_ONCE, "ending jobs stay in the queue for a moment"
    assert len({run.id for run in rlnb.runs(tag="sweep:many")}) == RUNS
    wait_until(lambda: not slurm.jobs(), 60)
    wait_until(lambda: not any(processes(run) for run in sweep.runs), 60)
