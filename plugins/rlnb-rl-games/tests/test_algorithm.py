"""rlnb's additions to RL-Games' own PPO."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rl_games") is None, reason="RL-Games is not installed here")


def test_a_rank_without_a_writer_does_not_collect_the_envs_log(monkeypatch: pytest.MonkeyPatch) -> None:
    from rl_games.common.algo_observer import IsaacAlgoObserver
    from rlnb_rl_games.algorithm import Observer

    rows: list[Any] = []
    monkeypatch.setattr(IsaacAlgoObserver, "process_infos", lambda self, infos, done_indices: rows.append(infos))
    observer = Observer()
    for writer in (None, object()):
        observer.algo = SimpleNamespace(writer=writer)
        observer.process_infos({"episode": writer}, None)
    assert rows == [{"episode": observer.algo.writer}]


def test_a_checkpoint_gets_its_name_once_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rl_games.algos_torch.a2c_continuous import A2CAgent
    from rlnb_rl_games.algorithm import ContinuousPpo

    def save(self: A2CAgent, fn: str) -> None:
        assert not list(tmp_path.glob("ep_6*"))
        Path(f"{fn}.pth").write_text("whole")

    monkeypatch.setattr(A2CAgent, "save", save)
    ContinuousPpo.save(object.__new__(ContinuousPpo), str(tmp_path / "ep_6"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("ep_6.pth", "whole")]
