"""Tests of rlnb.worker.isaac.sources."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlnb.errors import FreshProcessError
from rlnb.worker.isaac.modules import import_file
from rlnb.worker.isaac.sources import Sources

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


def test_an_edited_file_is_named(package: Path) -> None:
    sources = Sources()
    importlib.import_module(f"{PACKAGE}.tasks")
    sources.note()
    sources.refuse_edited()
    edit(package / "rewards.py")
    with pytest.raises(FreshProcessError, match=r"rewards\.py was edited after this process had imported it"):
        sources.refuse_edited()
    with pytest.raises(FreshProcessError):
        sources.refuse_edited()


def test_an_edit_between_an_import_and_the_end_of_its_request_is_seen(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    sources = Sources().watch()
    importlib.import_module(f"{PACKAGE}.tasks")
    edit(package / "rewards.py")
    with pytest.raises(FreshProcessError, match=r"rewards\.py was edited"):
        sources.refuse_edited()


def test_a_module_that_does_not_exist_is_not_found_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    Sources().watch()
    Sources().watch()  # as with two simulators in one process: neither may search through the other
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module_of_mine'"):
        importlib.import_module("no_such_module_of_mine")
    assert importlib.import_module("json.tool").__name__ == "json.tool"


@pytest.mark.parametrize("place", ["before", "behind"])
def test_two_finders_that_search_through_all_others_do_not_recurse(
    package: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    class Again:
        """Searches through all other finders, as the finder of another library may."""

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            return next(filter(None, specs), None)

    finders: list[Any] = [*sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    sources = Sources().watch()
    finders.insert(0 if place == "before" else 1, Again())
    importlib.import_module(f"{PACKAGE}.tasks")
    edit(package / "rewards.py")
    with pytest.raises(FreshProcessError, match=r"rewards\.py was edited"):
        sources.refuse_edited()


def test_a_file_that_is_edited_before_its_import_is_no_edit(package: Path) -> None:
    sources = Sources()
    sources.refuse_edited()
    edit(package / "tasks.py")
    importlib.import_module(f"{PACKAGE}.tasks")
    sources.refuse_edited()


def test_the_module_of_a_cell_is_not_watched(tmp_path: Path) -> None:
    cell = tmp_path / "puck.py"
    cell.write_text("import helper_of_the_puck\n")
    (tmp_path / "helper_of_the_puck.py").touch()
    import_file(cell, ["helper_of_the_puck.py"])
    sources = Sources()
    sources.refuse_edited()
    edit(cell)
    edit(tmp_path / "helper_of_the_puck.py")
    sources.refuse_edited()
