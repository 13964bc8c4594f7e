"""Fixtures of the tests on real Isaac Lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One root and one living simulator for the module: starting a simulator is the slow part."""
    from rlnb.simulation import simulator
    from rlnb.worker.assets.packs import build

    root = tmp_path_factory.mktemp("isaaclab")
    patch = pytest.MonkeyPatch()
    patch.setenv("RLNB_QUEUE", str(root / "queue"))
    patch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    patch.setattr(rlnb.options, "root", root / "rlnb-runs")
    patch.setattr(rlnb.options, "warm", True)
    yield root / "rlnb-runs"
    simulator.shut_down()
    patch.undo()
