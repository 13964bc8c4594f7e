"""Parts of a task card that need no simulator; whole cards: tests/worker/isaac."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from rlnb import plugins
from rlnb.registration.plugin_types import AssetPack
from rlnb.spec import Task
from rlnb.tasks.card import Asset, AssetRoot, ConfigField, Selectors
from rlnb.worker.requests.card import _assets, _fields, _missing, _without_unknown


def test_an_installed_package_is_not_missing() -> None:
    assert _missing(("pluggy>=1", "numpy")) == ()


def test_a_missing_package_or_version_is_named_with_the_installed_version() -> None:
    assert _missing(("pluggy<1", "no-such-package>=2")) == (
        f"pluggy<1 (installed: {metadata.version('pluggy')})",
        "no-such-package>=2 (not installed)",
    )


@dataclass
class Reward:
    weight: Any = 1
    func: str = "mdp:alive"
    params: dict[str, Any] = field(default_factory=lambda: {"limits": (0.5, [MISSING]), "steps": 3})
    target: float | None = None


def test_fields_have_a_type_and_a_value_that_json_can_hold() -> None:
    fields = _fields({"alive": Reward()})
    assert fields["alive.weight"] == ConfigField(type="float", value=1), "Isaac Lab accepts any number as a weight"
    assert fields["alive.params.steps"] == ConfigField(type="int", value=3)
    assert fields["alive.func"] == ConfigField(type="str", value="mdp:alive")
    assert fields["alive.target"] == ConfigField(type="any", value=None)
    assert fields["alive.params.limits"].type == "list"
    assert json.dumps(fields["alive.params.limits"].value).startswith('[0.5, ["<dataclasses._MISSING')


def test_a_card_is_made_without_selectors_that_the_task_does_not_have() -> None:
    task = Task(id="Demo", physics="newton", renderer="rtx", presets=("fast", "slow"))
    assert _without_unknown(task, Selectors(physics=("newton",), presets=("fast",))) == Task(
        id="Demo", physics="newton", presets=("fast",)
    )


def test_a_missing_file_has_a_fix_and_a_remote_one_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = AssetPack(name="arms", version="1", build="m:f", files={"gone.usd": "MIT"}, on_request=True)
    monkeypatch.setattr(plugins, "asset_packs", lambda: {"arms": pack})
    (tmp_path / "here.usd").touch()
    local = AssetRoot(path=str(tmp_path), reason="set")
    assets = _assets({"robot": f"{tmp_path}/gone.usd", "table": f"{tmp_path}/here.usd"}, local)
    assert assets["here.usd"] == Asset(path=f"{tmp_path}/here.usd", exists=True)
    assert not assets["gone.usd"].exists
    assert assets["gone.usd"].fix.startswith("rlnb assets build --robots")
    cloud = AssetRoot(path="https://cloud/assets", reason="it answers")
    assert _assets({"robot": "https://cloud/assets/arm.usd"}, cloud) == {
        "arm.usd": Asset(path="https://cloud/assets/arm.usd", exists=None)
    }
