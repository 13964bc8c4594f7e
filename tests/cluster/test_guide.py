"""The snippets of the guide to clusters run on a real Slurm, on CPUs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.worker.assets.packs import build

sys.path.append(str(Path(__file__).parents[1] / "site"))

pytestmark = [pytest.mark.isaaclab, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_snippets_of_the_guide_run(
    slurm: Any, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("isaaclab")
    from test_snippets import ON_A_CPU, PODS, SIZES, execute_page

    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    execute_page("docs/clusters.md", tmp_path, {**SIZES, **ON_A_CPU}, PODS)
    assert {run.state for run in rlnb.runs()} == {"completed"}
    assert (tmp_path / "scaling.html").is_file()
