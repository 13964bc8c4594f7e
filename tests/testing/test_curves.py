"""What the conformance kit reads from the curves of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.testing.runs import first_observations, learned


def test_the_learned_curves_leave_out_what_depends_on_the_clock(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait()
    assert {name: len(values) for name, values in learned(run).items()} == {"reward": 2}
    assert "fps" in run.metrics.names
    with pytest.raises(AssertionError, match="no digests of its ranks"):
        first_observations(run)
