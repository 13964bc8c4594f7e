"""Task cards in the kernel: when a cached card is used and when a new one is made. No simulator."""

from __future__ import annotations

import dataclasses
import json
import time
from importlib import metadata
from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.configs.card import AgentCard, Asset, AssetRoot, CameraCard, ConfigField, Selectors, TaskCard
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json
from rlnb.tasks import card_cache as cards
from rlnb.tasks import source
from rlnb.version import untested

NOTEBOOK = "lift.ipynb"
CARD = TaskCard(
    task="Demo",
    gym_id="Demo-v0",
    workflow="direct",
    num_envs=64,
    fields={"sim.dt": ConfigField(type="float", value=0.005), "viewer.eye": ConfigField(type="list", value=[1.0, 2])},
    presets=Selectors(physics=("physx",)),
    cameras={"wrist": CameraCard(data_types=("rgb",), width=64, height=48)},
    agents={"sb3": AgentCard(error="no"), "skrl": AgentCard(fields={"seed": ConfigField(type="int", value=3)})},
    assets={"remote.usd": Asset(path="https://host/remote.usd", exists=None)},
    asset_root=AssetRoot(path="/pack", reason="set for this run"),
    versions={"rlnb": "0"},
)


def cache(task: rlnb.Task, card: TaskCard) -> Path:
    path = cards.card_path(options.folders, task, None, None)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_once(path, to_json(card))
    return path


def test_a_cached_card_serves_the_same_source_only(root: Path, tmp_path: Path) -> None:
    asset = tmp_path / "there.usd"
    asset.touch()
    card = dataclasses.replace(CARD, assets={"there.usd": Asset(path=str(asset), exists=True)})
    source.write_module(options.folders, "Demo", "TASK = 1\n", NOTEBOOK)
    task = rlnb.task("Demo")
    cache(task, card)
    assert cards.cached_card(options.folders, task, None, None) == card
    assert rlnb.task("Demo", num_envs=7, overrides={"sim.dt": 1.0}).card() == card, "neither changes the card"
    assert cards.cached_card(options.folders, rlnb.task("Demo", physics="physx"), None, None) is None
    streams = rlnb.task("Demo", launcher_args={"livestream": 2})
    assert cards.cached_card(options.folders, streams, None, None) is None, "it may need Isaac Sim"
    assert cards.cached_card(options.folders, task, None, "/elsewhere") is None
    assert cards.cached_card(options.folders, task, "/another/python", None) is None
    source.write_module(options.folders, "Demo", "TASK = 2\n", NOTEBOOK)
    assert cards.cached_card(options.folders, rlnb.task("Demo"), None, None) is None
    asset.unlink()
    assert cards.cached_card(options.folders, task, None, None) is None, "an asset of the card is gone"


def test_the_sizes_of_terms_that_an_env_tells_are_added_to_the_card(root: Path) -> None:
    source.write_module(options.folders, "Demo", "TASK = 1\n", NOTEBOOK)
    task, sizes = rlnb.task("Demo"), {"actions": {"force": "1"}}
    cards.keep_term_sizes(task, None, None, sizes)
    assert cards.cached_card(options.folders, task, None, None) is None, "there is no card yet"
    cache(task, CARD)
    cards.keep_term_sizes(rlnb.task("Demo", overrides={"sim.dt": 1.0}), None, None, sizes)
    assert task.card() == CARD, "another value can make terms of other sizes"
    cards.keep_term_sizes(task, None, None, sizes)
    assert task.card() == dataclasses.replace(CARD, term_sizes=sizes)


def test_a_card_is_made_anew_once_a_file_of_its_package_was_written(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "tasks.py"
    source.write_text("NUM_ENVS = 4\n")
    task = rlnb.task("Demo", imports="mine.tasks")
    cache(task, dataclasses.replace(CARD, sources={str(source): files.stamp(source)}))
    assert cards.cached_card(options.folders, task, None, None) is not None
    assert cards.cached_card(options.folders, rlnb.task("Demo"), None, None) is None, "it has no such import"
    source.write_text("NUM_ENVS = 16\n")
    assert cards.cached_card(options.folders, task, None, None) is None
    source.unlink()
    assert cards.cached_card(options.folders, task, None, None) is None


def test_a_card_of_an_untested_isaac_lab_warns_once_for_each_kernel(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.warn_once.cache_clear()
    cache(rlnb.Task(id="Demo"), dataclasses.replace(CARD, warning=untested("3.1.0")))
    for _ in range(2):
        rlnb.Task(id="Demo").card()
    assert [record.message for record in caplog.records] == [untested("3.1.0")]


def test_a_damaged_card_is_ignored(root: Path) -> None:
    task = rlnb.Task(id="Demo")
    path = cache(task, CARD)
    path.write_text(json.dumps(to_json(CARD))[:50])
    assert cards.cached_card(options.folders, task, None, None) is None


def test_a_card_of_another_version_of_rlnb_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = rlnb.task("Demo")
    before = cards.card_path(options.folders, task, None, None)
    monkeypatch.setattr(cards, "CARD_SCHEMA", cards.CARD_SCHEMA + 1)
    assert cards.card_path(options.folders, task, None, None) != before


@pytest.mark.parametrize("package", ["ovphysx", "newton", "torch"])
def test_a_card_from_before_the_upgrade_of_a_package_is_not_read(
    package: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = metadata.version
    paths = set()
    for version in ("0.6", "0.7"):
        monkeypatch.setattr(metadata, "version", lambda name, v=version: v if name == package else installed(name))
        cards._installed.cache_clear()
        paths.add(cards.card_path(options.folders, rlnb.task("Demo"), None, None))
    cards._installed.cache_clear()
    assert len(paths) == 2


def test_a_card_survives_its_file_unchanged(root: Path) -> None:
    cache(rlnb.Task(id="Demo"), CARD)
    assert cards.cached_card(options.folders, rlnb.Task(id="Demo"), None, None) == CARD


def test_a_card_with_an_unknown_key_or_value_is_replaced(root: Path) -> None:
    task = rlnb.Task(id="Demo")
    path = cache(task, CARD)
    for damage in ({"episode_length_s": 5.0}, {"num_envs": "many"}, {"fields": {"sim.dt": {"type": "matrix"}}}):
        path.write_text(json.dumps({**to_json(CARD), **damage}))
        assert cards.cached_card(options.folders, task, None, None) is None, damage


def test_a_card_of_some_hundred_values_is_read_in_milliseconds() -> None:
    fields = {f"group_{i}.value": ConfigField(type="float", value=float(i)) for i in range(1000)}
    values = to_json(dataclasses.replace(CARD, fields=fields))
    times_s = []
    for _ in range(20):
        start_s = time.thread_time()  # other processes do not count
        card = from_json(TaskCard, values)
        times_s.append(time.thread_time() - start_s)
    assert card.fields == fields
    assert min(times_s) < 0.02


def test_the_fault_of_a_file_of_ones_own_is_not_cached_so_that_its_fix_helps(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = tmp_path / "dog.urdf"
    fine = Asset(path=str(robot), exists=True, places=("scene.robot.spawn.asset_path",))
    faulty = dataclasses.replace(fine, fix="Install the importer.", fault="the importer is not installed")
    robot.touch()
    made = []

    def card(asset: Asset) -> TaskCard:
        made.append(asset)
        return dataclasses.replace(CARD, own_assets={asset.places[0]: asset})

    for asset in (faulty, fine):
        monkeypatch.setattr(cards.pool, "request", lambda *_, asset=asset, **__: card(asset))
        assert rlnb.Task(id="Demo").card().own_assets[asset.places[0]] == asset
    rlnb.Task(id="Demo").card()
    assert made == [faulty, fine], "a card without a fault is cached"
    for requires in (("pytetwild",), ()):
        card_of = dataclasses.replace(CARD, task="Soft", requires=requires)
        monkeypatch.setattr(cards.pool, "request", lambda *_, card_of=card_of, **__: card_of)
        assert rlnb.Task(id="Soft").card().requires == requires, "after the package is installed"
    robot.unlink()
    assert cards.cached_card(options.folders, rlnb.Task(id="Demo"), None, None) is None, "the file is gone"
