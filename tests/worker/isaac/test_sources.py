"""What is noted of the files of a user's own packages when they are imported."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlnb.errors import FreshProcessError
from rlnb.storage.files import stamp
from rlnb.worker.isaac import sources
from rlnb.worker.isaac.modules import import_file
from rlnb.worker.isaac.sources import Sources, hashes, stamps

MODULE = "module_of_a_user"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder on the path, whose modules are watched until the end of the test."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    sources.watch()
    yield tmp_path
    sys.modules.pop(MODULE, None)


def test_a_file_is_noted_as_it_was_when_it_was_imported(folder: Path) -> None:
    file = folder / f"{MODULE}.py"
    file.write_text("reach = 1.0\n")
    before = sources.Imported(stamp=stamp(file), sha256=hashlib.sha256(b"reach = 1.0\n").hexdigest())
    assert sources.imported(str(file)) is None
    importlib.import_module(MODULE)
    file.write_text("reach = 2.00\n")
    assert sources.imported(str(file)) == before


def test_a_second_call_changes_nothing(folder: Path) -> None:
    before = [*sys.meta_path]
    sources.watch()
    assert sys.meta_path == before


def test_neither_cells_nor_modules_of_an_archive_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "puck.py").write_text("import helper_of_a_puck\n")
    (folder / "helper_of_a_puck.py").touch()
    import_file(folder / "puck.py", ["helper_of_a_puck.py"])
    assert sources.imported(str(folder / "helper_of_a_puck.py")) is None
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr(f"{MODULE}.py", "reach = 1.0\n")
    monkeypatch.syspath_prepend(folder / "archive.zip")
    assert importlib.import_module(MODULE).reach == 1.0
    assert sources.imported(str(folder / "archive.zip" / f"{MODULE}.py")) is None


# -- own files -------------------------------------------------------------------------------------------------------


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


# -- sources ---------------------------------------------------------------------------------------------------------


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
