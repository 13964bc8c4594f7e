"""The default agent config of a plugin's library. Export without a backend's own: tests/worker/jobs/test_export.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.worker.isaac import isaaclab


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "rlnb_plain"
    folder.mkdir()
    (folder / "__init__.py").write_text("def ppo():\n    return {'gamma': 0.5}\n")
    (folder / "ppo.yaml").write_text("learning_rate: 3e-4\nactor: {hidden_dims: [64, 64]}\n")
    (folder / "broken.yaml").write_text("- 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def test_a_default_agent_is_a_function_or_a_file(module: str) -> None:
    def default(reference: str) -> Any:
        return isaaclab.default_agent(rlnb.Library(name="plain", backend="", default_agent=reference))

    assert default("") is None
    assert default(f"{module}:ppo") == {"gamma": 0.5}
    assert default(f"{module}:ppo.yaml") == {"learning_rate": 3e-4, "actor": {"hidden_dims": [64, 64]}}
    with pytest.raises(rlnb.RlnbError, match="not a mapping"):
        default(f"{module}:broken.yaml")
    with pytest.raises(rlnb.RlnbError, match=r"none.yaml cannot be read"):
        default(f"{module}:none.yaml")
    with pytest.raises(rlnb.RlnbError, match=r"'nowhere:ppo\.yaml': there is no package 'nowhere'"):
        default("nowhere:ppo.yaml")
