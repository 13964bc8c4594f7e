"""The contract of an RL library, tested with the real library."""

import importlib.util
from pathlib import Path

import pytest

import rlnb
from rlnb.testing import LibraryConformance

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


class TestSb3(LibraryConformance):
    library = "sb3"

    def test_observation_statistics_are_restored(self, root: Path) -> None:
        """Cartpole's own agent config does not normalise."""
        normalising = {"library": "sb3", "num_envs": 16, "agent": {"+normalize_input": True}, "device": "cpu"}
        run = rlnb.train(self.task, max_iterations=2, **normalising).wait()
        run.resume(max_iterations=3).wait()
        started = run.started
        assert started is not None
        assert started.restored["normaliser"].startswith("restored"), started.restored
        with pytest.raises(rlnb.RunError, match="has normalize_input=True, but this agent has False"):
            self.train(1, init_from=run).wait()
