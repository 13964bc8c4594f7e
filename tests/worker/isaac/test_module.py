"""Task modules are imported from their source text, whatever bytecode there is. No simulator."""

from __future__ import annotations

import importlib.metadata
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.module import import_file


@pytest.fixture(autouse=True)
def bytecode_as_usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, value: int) -> Path:
    """Write a task module, and a module and a package next to it; their sizes and times are the same for any value."""
    texts = {
        "lift.py": "import lift_helper, lift_parts.near\n"
        f"FOUND = ({value}, lift_helper.FOUND, lift_parts.near.FOUND)\n",
        "lift_helper.py": f"FOUND = {value}\n",
        "lift_parts/__init__.py": "",
        "lift_parts/near.py": f"FOUND = {value}\n",
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return folder / "lift.py"


LOCAL = ("lift_helper.py", "lift_parts/__init__.py", "lift_parts/near.py")


def test_an_edit_within_a_second_that_keeps_the_size_is_seen_everywhere(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    assert import_file(path, LOCAL).FOUND == (1, 1, 1)
    for name in ("lift.py", *LOCAL):
        py_compile.compile(str(tmp_path / name))  # as an import by another program leaves it
    write(tmp_path, 2)
    assert import_file(path, LOCAL).FOUND == (2, 2, 2)


def test_nothing_is_written_next_to_a_task_module(tmp_path: Path) -> None:
    import_file(write(tmp_path, 1), LOCAL)
    assert not list(tmp_path.rglob("__pycache__"))


def test_an_unchanged_module_is_imported_once(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    assert import_file(path, LOCAL) is import_file(path, LOCAL)


def test_a_module_that_fails_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            import_file(path, ())


def test_a_package_whose_tasks_cannot_be_imported_is_left_out_and_named(capfd: pytest.CaptureFixture[str]) -> None:
    broken = importlib.metadata.EntryPoint("theirs", "no_such_module_of_theirs", "isaaclab.tasks")
    fine = importlib.metadata.EntryPoint("ours", "json", "isaaclab.tasks")
    isaaclab.load_tasks([broken, fine])
    assert "No module named" in isaaclab._left_out.pop("no_such_module_of_theirs")
    assert isaaclab._left_out == {}
    assert "ModuleNotFoundError" in capfd.readouterr().err
