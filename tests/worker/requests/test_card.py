"""Parts of a task card that need no simulator; whole cards: tests/worker/isaac."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.configs.card import AgentCard, Asset, AssetRoot, ConfigField, Selectors
from rlnb.contracts.plugin_types import AssetPack
from rlnb.hooks import plugins
from rlnb.spec import Task
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.requests.card import _assets, _default_library, _without_unknown


def test_a_missing_file_has_a_fix_and_a_remote_one_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = AssetPack(name="arms", version="1", build="m:f", files={"gone.usd": "MIT"}, on_request=True)
    monkeypatch.setattr(plugins, "asset_packs", lambda: {"arms": pack})
    (tmp_path / "here.usd").touch()
    local = AssetRoot(path=str(tmp_path), reason="set")
    assets = _assets({"robot": f"{tmp_path}/gone.usd", "table": f"{tmp_path}/here.usd"}, local)
    assert assets["here.usd"] == Asset(path=f"{tmp_path}/here.usd", exists=True, places=("table",))
    assert not assets["gone.usd"].exists
    assert assets["gone.usd"].fix.startswith("rlnb assets build --robots")
    cloud = AssetRoot(path="https://cloud/assets", reason="it answers")
    assert _assets({"robot": "https://cloud/assets/arm.usd"}, cloud) == {
        "arm.usd": Asset(path="https://cloud/assets/arm.usd", exists=None, places=("robot",))
    }


def test_a_card_is_made_without_selectors_that_the_task_does_not_have() -> None:
    task = Task(id="Demo", physics="newton", renderer="rtx", presets=("fast", "slow"))
    assert _without_unknown(task, Selectors(physics=("newton",), presets=("fast",))) == Task(
        id="Demo", physics="newton", presets=("fast",)
    )


@pytest.mark.parametrize(("algorithm", "library"), [("MAPPO", "skrl_mappo"), ("IPPO", "skrl"), ("PPO", "skrl")])
def test_a_default_config_that_another_library_trains_makes_it_the_default(algorithm: str, library: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    gymnasium.register(id="rlnb-duet", entry_point="m:Env", kwargs={"default_agent": "skrl"})
    config = AgentCard(fields={"agent.class": ConfigField(type="str", value=algorithm)})
    try:
        registered = Registered(gym_id="rlnb-duet", success=None, agents={})
        assert _default_library(registered, {"skrl": config, "skrl_mappo": config}) == library, "if the task has it"
    finally:
        del gymnasium.registry["rlnb-duet"]
