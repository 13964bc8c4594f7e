"""The contract of an RL library, on the real thing."""

import importlib.util
from pathlib import Path

import pytest

from rlnb.testing import LibraryConformance

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


class TestRlGames(LibraryConformance):
    library = "rl_games"
    agent = {"params.config.save_frequency": 2}

    def test_it_keeps_to_the_cores_that_it_is_given(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """RL-Games sets up to four threads by itself: two trainings side by side would be in each other's way."""
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        run = self.train(1).wait()
        assert "  torch_threads: 0" in (run.path / "logs" / "params" / "agent.yaml").read_text().splitlines()
