"""The files of a user's own packages that define a task."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.worker.isaac import sources
from rlnb.worker.isaac.sources import hashes, stamps

PACKAGE = "package_of_a_user"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of a package with the modules ``tasks`` and ``rewards``, of which none is imported yet."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    for name, text in {"__init__": "", "tasks": f"import {PACKAGE}.rewards\nclass Cfg: pass\n", "rewards": ""}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "agent.yaml").write_text("seed: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def edit(file: Path) -> None:
    """Write a file, with the same size as before."""
    text = file.read_text()
    file.write_text(text)
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))


def of_user(cfg: object) -> list[str]:
    """Return the names of the user's modules that have a hash, without those of these tests."""
    return [name for name in hashes(cfg, ()) if name.startswith(PACKAGE)]


def test_a_task_is_defined_by_its_package_and_the_yaml_files_that_it_names(package: Path) -> None:
    cfg = importlib.import_module(f"{PACKAGE}.tasks").Cfg()
    registration = {"rl_games_cfg_entry_point": f"{PACKAGE}:agent.yaml", "skrl_cfg_entry_point": "no_such:agent.yaml"}
    before = stamps(cfg, (), registration.values())
    names = ["__init__.py", "agent.yaml", "rewards.py", "tasks.py"]
    assert [*before] == [str(package / name) for name in names]
    assert all(before.values())
    digest = hashlib.sha256((package / "tasks.py").read_bytes()).hexdigest()
    assert hashes(cfg, ())[f"{PACKAGE}.tasks"] == digest
    assert of_user(cfg) == [PACKAGE, f"{PACKAGE}.rewards", f"{PACKAGE}.tasks"]
    edit(package / "agent.yaml")
    after = stamps(cfg, (), registration.values())
    assert [Path(file).name for file in before if before[file] != after[file]] == ["agent.yaml"]


def test_a_task_of_an_installed_package_has_no_sources_of_the_user_but_those_that_it_imports(package: Path) -> None:
    importlib.import_module(f"{PACKAGE}.rewards")
    assert stamps(pytest.Item.__new__, (), ()) == {}
    assert [Path(file).name for file in stamps(0, (f"{PACKAGE}.rewards",), ())] == ["__init__.py", "rewards.py"]


def test_each_package_that_a_cell_imports_has_a_hash(package: Path) -> None:
    (package / "without_init").mkdir()
    (package / "without_init" / "terms.py").write_text("reach = 1.0\n")
    importlib.import_module(f"{PACKAGE}.rewards")
    importlib.import_module(f"{PACKAGE}.without_init.terms")
    assert of_user(0) == [PACKAGE, f"{PACKAGE}.rewards", f"{PACKAGE}.without_init.terms"]
    digest = hashlib.sha256(b"reach = 1.0\n").hexdigest()
    assert hashes(0, ())[f"{PACKAGE}.without_init.terms"] == digest


def test_what_is_installed_and_rlnb_have_no_hash(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("rlnb_rsl_rl")
    importlib.import_module(f"{PACKAGE}.rewards")
    assert not {name.partition(".")[0] for name in hashes(0, ())} & {"rlnb", "rlnb_rsl_rl", "isaaclab", "numpy", "json"}
    monkeypatch.setenv("ISAAC_PATH", str(package.parent))
    assert of_user(0) == [], "a package of Isaac Sim"


def test_the_hash_is_that_of_the_text_that_was_imported(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    sources.watch()
    file = package / "rewards.py"
    file.write_text("reach = 1.0\n")
    module = importlib.import_module(f"{PACKAGE}.rewards")
    before = stamps(0, (f"{PACKAGE}.rewards",), ())
    file.write_text("reach = 2.0\n")
    edit(file)
    assert module.reach == 1.0
    assert hashes(0, ())[f"{PACKAGE}.rewards"] == hashlib.sha256(b"reach = 1.0\n").hexdigest()
    assert stamps(0, (f"{PACKAGE}.rewards",), ()) == before, "a card is taken for older than the edit"
    file.unlink()
    assert f"{PACKAGE}.rewards" in hashes(0, ())
