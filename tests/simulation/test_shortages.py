"""Tests of rlnb.worker.isaac.solver with Isaac Lab."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb

LIMIT = "sim.physics.solver_cfg.njmax"


@pytest.mark.isaaclab
def test_a_training_that_loses_contacts_says_so_once(root: Path) -> None:
    task = rlnb.task("Isaac-Ant-Direct", num_envs=4, overrides={LIMIT: 4})
    run = rlnb.train(task, max_iterations=2, device="cpu").wait(300)
    (shortage,) = run.shortages
    assert (shortage.limit, shortage.size, shortage.num_envs) == ("njmax", 4, 4)
    assert shortage.needed > 4
    assert [symptom.what for symptom in run.diagnose().symptoms] == [shortage.what]
    log = run.jobs[0].folder.log().read_text(errors="replace")
    assert log.count(shortage.what.partition(",")[0][:40]) == 1
    assert "nefc overflow" not in log
