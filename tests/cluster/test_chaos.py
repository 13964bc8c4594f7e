"""The chaos suite on Slurm, small: no fault makes a run stuck, lost or trained twice. ``make chaos`` runs it longer."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
from chaos.cluster import FAULTS_ON_SLURM, on_slurm
from chaos.episode import episode
from chaos.world import as_line

SEEDS = (1, 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_fault_on_slurm_makes_a_run_stuck_lost_or_trained_twice(slurm: Any, clean: Path, tmp_path: Path) -> None:
    counts: collections.Counter[str] = collections.Counter()
    try:
        for seed in SEEDS:
            of_seed = episode(tmp_path, seed, FAULTS_ON_SLURM, counts, subject=on_slurm(slurm))
            assert [as_line(violation) for violation in of_seed] == [], f"seed {seed}"
            slurm.up()  # what a fault has stopped
    finally:
        slurm.up()
    assert counts.total() >= 2 * len(SEEDS)
