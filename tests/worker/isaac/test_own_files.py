"""The files of a user's own packages that define a task."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.worker.isaac.own_files import hashes, stamps

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


def test_a_task_is_defined_by_its_package_and_the_yaml_files_that_it_names(package: Path) -> None:
    cfg = importlib.import_module(f"{PACKAGE}.tasks").Cfg()
    registration = {"rl_games_cfg_entry_point": f"{PACKAGE}:agent.yaml", "skrl_cfg_entry_point": "no_such:agent.yaml"}
    before = stamps(cfg, (), registration.values())
    names = ["__init__.py", "agent.yaml", "rewards.py", "tasks.py"]
    assert [*before] == [str(package / name) for name in names]
    assert all(before.values())
    digest = hashlib.sha256((package / "tasks.py").read_bytes()).hexdigest()
    assert hashes(cfg, ())[f"{PACKAGE}.tasks"] == digest
    assert [*hashes(cfg, ())] == [PACKAGE, f"{PACKAGE}.rewards", f"{PACKAGE}.tasks"]
    edit(package / "agent.yaml")
    after = stamps(cfg, (), registration.values())
    assert [Path(file).name for file in before if before[file] != after[file]] == ["agent.yaml"]


def test_a_task_of_an_installed_package_has_no_sources_of_the_user_but_those_that_it_imports(package: Path) -> None:
    importlib.import_module(f"{PACKAGE}.rewards")
    assert stamps(pytest.Item.__new__, (), ()) == {}
    assert [Path(file).name for file in stamps(0, (f"{PACKAGE}.rewards",), ())] == ["__init__.py", "rewards.py"]
