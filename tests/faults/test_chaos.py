"""The chaos suite, small: no fault makes a run stuck, lost or trained twice. ``make chaos`` runs it at any length."""

from __future__ import annotations

import collections
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from chaos.episode import episode
from chaos.faults import FAULTS
from chaos.points import points
from chaos.world import as_line

SEED, EPISODES = 1, 12
ON_DISK = ("fill_disk", "read_only", "kill_agent", "kill_kernel", "cancel", "storm")
"""Faults on a small disk of its own."""


@pytest.mark.slow
def test_no_fault_makes_a_run_stuck_lost_or_trained_twice(root: Path, tmp_path: Path) -> None:
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(SEED, SEED + EPISODES):
        lines = [as_line(violation) for violation in episode(tmp_path, seed, [*FAULTS], counts)]
        assert lines == [], f"seed {seed}"
    assert counts.total() > 2 * EPISODES


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk cannot be mounted without root")
def test_a_full_or_read_only_disk_makes_no_run_stuck(root: Path, tmp_path: Path) -> None:
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(SEED, SEED + 4):
        assert [as_line(each) for each in episode(tmp_path, seed, ON_DISK, counts, disk=True)] == [], f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["evaluate", "prune", "delete", "cancel"])
def test_a_kernel_that_is_killed_while_it_changes_a_run_leaves_it_usable(verb: str, root: Path, tmp_path: Path) -> None:
    count, violations = points(tmp_path, (verb,))
    assert [as_line(violation) for violation in violations] == []
    assert count > 0
