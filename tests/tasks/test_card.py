"""Task cards, as the worker writes and the kernel reads them."""

from __future__ import annotations

import pytest

from rlnb.configs.card import AgentCard, Asset, AssetRoot, CameraCard, ConfigField, Selectors, TaskCard
from rlnb.errors import RlnbError
from rlnb.storage.serial import from_json, to_json

CARD = TaskCard(
    task="Demo",
    gym_id="Demo-v0",
    workflow="direct",
    num_envs=64,
    fields={"eye": ConfigField(type="list", value=[1.0, [2, None]]), "seed": ConfigField(type="any")},
    presets=Selectors(physics=("physx",), presets=("physx",)),
    cameras={"wrist": CameraCard(data_types=("rgb", "depth"), width=64, height=48)},
    agents={"sb3": AgentCard(error="it does not load"), "skrl": AgentCard(takes_more=("", "agent"))},
    assets={"arm.usd": Asset(path="/pack/arm.usd", exists=False, fix="rlnb assets build")},
    asset_root=AssetRoot(path="/pack", reason="set for this run"),
    versions={"rlnb": "0.1.0"},
)


def test_a_card_survives_json() -> None:
    assert from_json(TaskCard, to_json(CARD)) == CARD


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"fields": {"seed": {"type": "matrix", "value": 1}}}, "type='matrix'"),
        ({"cameras": {"wrist": {"width": 64}}}, "height"),
        ({"agents": {"skrl": {"mising": []}}}, "Did you mean 'missing'"),
    ],
)
def test_a_damaged_part_is_named(damage: dict[str, object], message: str) -> None:
    with pytest.raises(RlnbError, match=message):
        from_json(TaskCard, {**to_json(CARD), **damage})


def test_a_library_is_usable_if_its_config_loads_and_nothing_is_missing() -> None:
    assert AgentCard().usable
    assert not AgentCard(error="it does not load").usable
    assert not AgentCard(missing=("jax (not installed)",)).usable


@pytest.mark.parametrize(("path", "local"), [("/pack", True), ("https://host/Assets", False), ("omniverse://x", False)])
def test_a_root_with_a_url_scheme_is_not_local(path: str, local: bool) -> None:
    assert AssetRoot(path=path, reason="").local == local
