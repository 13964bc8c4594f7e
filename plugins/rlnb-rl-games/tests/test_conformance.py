"""The contract of an RL library, tested with the real library."""

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

    def test_it_uses_only_the_cores_it_is_given(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """RL-Games itself starts up to four threads, so two simultaneous trainings would compete for cores."""
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        run = self.train(1).wait()
        assert "  torch_threads: 0" in (run.path / "logs" / "params" / "agent.yaml").read_text().splitlines()


class TestRlGamesSac(LibraryConformance):
    library = "rl_games_sac"
    iterations = 12  # the time of an episode
    agent = {"params.config.save_frequency": 2, "params.config.num_updates_per_step": 1}
    unlogged = frozenset({"value_loss", "action_std"})
