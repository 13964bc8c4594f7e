"""What is noted of the files of a user's own packages when they are imported."""

from __future__ import annotations

import hashlib
import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.storage.files import stamp
from rlnb.worker.isaac import sources
from rlnb.worker.isaac.modules import import_file

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
