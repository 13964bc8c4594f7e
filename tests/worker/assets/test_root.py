"""The asset root, and the search for it in a separate process while the worker imports torch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rlnb import RlnbError
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
