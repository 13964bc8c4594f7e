"""The asset root, and the search for it in a separate process while the worker imports torch."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlnb import RlnbError
from rlnb.configs.card import Asset
from rlnb.worker.assets import packs
from rlnb.worker.assets import root as assets

NOWHERE = "https://127.0.0.1:9/assets"
"""A cloud that does not answer: nothing listens on this port."""
THREADS = """
import sys, threading
others = []
def note(event, arguments):
    if event == "import" and threading.current_thread() is not threading.main_thread():
        others.append((threading.current_thread().name, arguments[0]))
sys.addaudithook(note)
from rlnb.worker.isaac import isaaclab
print(isaaclab.start().path)
assert not others, others
"""
"""Script of a first start that fails if a thread other than the main one imports a module."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any asset root; its cache is a folder of the test."""
    monkeypatch.delenv(assets.VARIABLE, raising=False)
    monkeypatch.setenv("RLNB_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_an_asset_root_that_is_set_comes_first_and_starts_no_process(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets.subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    assert assets.search("/mnt/assets/", NOWHERE)() == assets.AssetRoot(path="/mnt/assets", reason="set for this run")
    monkeypatch.setenv(assets.VARIABLE, "/opt/assets")
    assert assets.search(None, NOWHERE)().path == "/opt/assets"
    assert assets.search("/mnt/assets", NOWHERE)().path == "/mnt/assets"


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("pxr") is None, reason="USD is not installed here")
def test_the_packs_are_built_in_a_process_of_their_own(fresh: Path) -> None:
    threads = threading.active_count()
    answer = assets.search(None, NOWHERE)
    assert threading.active_count() == threads
    root = answer()
    assert root.path == str(packs.root_folder())
    assert (Path(root.path) / "Isaac/IsaacLab/Robots/Classic/Cartpole/cartpole.usd").is_file()
    assert "local pack" in root.reason


def test_the_reason_for_a_missing_asset_root_is_reported(fresh: Path) -> None:
    folder = fresh / "cache" / "rlnb"
    folder.mkdir(parents=True)
    (folder / "assets").write_text("a file, where a folder is needed")
    with pytest.raises(RlnbError, match=r"The asset packs cannot be written: .* Set RLNB_CACHE to a folder"):
        assets.search(None, NOWHERE)()


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_the_first_start_imports_modules_only_in_the_main_thread(fresh: Path) -> None:
    environment = {**os.environ, "RLNB_CACHE": str(fresh / "cache")}
    done = subprocess.run([sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip().splitlines()[-1]) / "assets.json").is_file()


@dataclass
class Spawn:
    usd_path: object = ""
    asset_path: str = ""
    scale: str = "/not/a/file"


def test_files_that_are_not_below_the_root_are_found_by_their_place(tmp_path: Path) -> None:
    root = assets.AssetRoot(path="/pack", reason="")
    shared = Spawn(usd_path="/own/hand.usd")
    cfg = {
        "robot": Spawn(usd_path="/pack/arm.usd"),
        "left": shared,
        "right": shared,
        "props": Spawn(usd_path=["/own/a.usd", "https://host/b.usd"]),
        "dog": Spawn(asset_path="robots/dog.urdf"),
        "any": Spawn(usd_path="{NUCLEUS}/c.usd"),
    }
    assert assets.named_in(cfg, root) == {"arm.usd": ("robot.usd_path",)}
    assert assets.own_files(cfg, root) == {
        "left.usd_path": "/own/hand.usd",
        "props.usd_path.0": "/own/a.usd",
        "props.usd_path.1": "https://host/b.usd",
        "dog.asset_path": "robots/dog.urdf",
    }


def test_a_file_of_ones_own_that_cannot_be_used_has_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, dog = tmp_path / "hand.usd", tmp_path / "dog.urdf"
    for path in (here, dog):
        path.write_text("text")
    assert assets.own_asset(str(here), "a.usd_path") == Asset(path=str(here), exists=True, places=("a.usd_path",))
    gone = assets.own_asset(str(tmp_path / "gone.usd"), "a.usd_path")
    assert (gone.exists, gone.fault) == (False, "")
    assert "overrides={'a.usd_path': <the path of a file>}" in gone.fix
    far = assets.own_asset(f"{NOWHERE}/hand.usd", "a.usd_path")
    assert (far.exists, far.fault) == (False, "https://127.0.0.1:9 does not answer")
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda name: None)
    urdf = assets.own_asset(str(dog), "a.asset_path")
    assert "-m pip install --no-deps isaacsim-asset-isolated==" in urdf.fix
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda name: object())
    assert assets.own_asset(str(dog), "a.asset_path").fix == ""


def test_files_of_ones_own_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "arm.usd").write_text("arm")
    (own := tmp_path.parent / f"{tmp_path.name}-own.usd").write_text("own")
    cfg = {"robot": Spawn(usd_path=f"{tmp_path}/arm.usd"), "own": Spawn(usd_path=str(own))}
    assert assets.hashes(assets.AssetRoot(path=str(tmp_path), reason=""), cfg) == {
        "arm.usd": hashlib.sha256(b"arm").hexdigest(),
        str(own): hashlib.sha256(b"own").hexdigest(),
    }
