"""A run that is resumed by several processes at once is trained by one of them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from chaos.resumes import tries


def test_one_of_several_processes_that_resume_a_run_at_once_is_accepted(root: Path) -> None:
    done = tries(root, count=4, seed=1)
    assert done.violations == []
    assert done.processes >= 2 * done.count == 8
