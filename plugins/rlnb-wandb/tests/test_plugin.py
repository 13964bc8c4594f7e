"""W&B follows a run only if its tags request it and the worker's interpreter allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_wandb import plugin

import rlnb
from rlnb.testing import TrackerConformance


class TestWandb(TrackerConformance):
    plugin = plugin
    tracker = plugin.WANDB
    tag = "wandb-offline"
    package = "wandb"
    settings = ("WANDB_",)


def test_missing_credentials_are_a_problem_before_anything_starts(
    root: Path, train: Callable[..., rlnb.Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(rlnb.CheckError) as caught:
        train("wandb")
    (problem,) = caught.value.problems
    assert "No API key configured" in problem.what
    assert "wandb login" in problem.fix
    assert not root.exists()
