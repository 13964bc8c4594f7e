"""Task modules are imported from their source text, whatever bytecode there is. No simulator."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import py_compile
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.modules import import_file


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


def beside(folder: Path, **texts: str) -> tuple[Path, list[str]]:
    """Write a task module and the modules beside it; return its path and their names.

    Args:
        folder: The folder.
        texts: Texts by name without the suffix, in which two underscores stand for a slash.
    """
    names = {name: name.replace("__", "/", 1) + ".py" for name in texts}
    for name, text in texts.items():
        path = folder / names[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "lift.py", [file for name, file in names.items() if name != "lift"]


def test_what_is_not_of_the_version_cannot_be_imported_by_anyone(tmp_path: Path) -> None:
    path, _ = beside(tmp_path, lift="import lift_parts.near", lift_parts__near="")
    (tmp_path / "lift_parts" / "__init__.py").touch()
    local = ["lift_parts/__init__.py", "lift_parts/near.py"]
    beside(tmp_path, planted="raise SystemExit", planted_too__x="", lift_parts__planted="raise SystemExit")
    (tmp_path / f"planted_so{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    module = import_file(path, local)
    for name in ("planted", "planted_so", "planted_too", "planted_too.x", "lift_parts.planted"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    assert str(tmp_path) not in sys.path
    assert module.lift_parts.near.__file__ == str(tmp_path / "lift_parts" / "near.py")


USES = """
import colorsys, colorsys as c
from colorsys import MINE
def later():
    import colorsys
    return colorsys.MINE
"""


@pytest.mark.parametrize("loaded", [True, False])
def test_a_module_with_the_name_of_an_installed_one_is_the_tasks_alone(tmp_path: Path, loaded: bool) -> None:
    sys.modules.pop("colorsys", None)
    if loaded:
        import colorsys
    path, local = beside(tmp_path, lift=f"{USES}import helps_lift", helps_lift=USES, colorsys="MINE = 1")
    module = import_file(path, local)
    assert module.later() == module.helps_lift.later() == module.colorsys.MINE == module.c.MINE == module.MINE == 1
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert module.colorsys.__name__.startswith("rlnb_task_colorsys_of_lift_")


def test_a_package_with_the_name_of_an_installed_one_is_the_tasks_alone(tmp_path: Path) -> None:
    path, _ = beside(tmp_path, lift="import wave.form\nfrom wave import form as f\nFOUND = wave.form.FOUND, f.FOUND")
    (tmp_path / "wave").mkdir()
    (tmp_path / "wave" / "__init__.py").write_text("from . import form\nfrom .form import FOUND")
    (tmp_path / "wave" / "form.py").write_text("import wave\nFOUND = 1")
    assert import_file(path, ["wave/__init__.py", "wave/form.py"]).FOUND == (1, 1)
    import wave

    assert wave.__file__ is not None
    assert not wave.__file__.startswith(str(tmp_path))


def test_a_folder_without_an_init_file_is_a_package_unless_another_one_is_installed(tmp_path: Path) -> None:
    path, local = beside(
        tmp_path, lift="from parts_of_lift import near\nimport json", parts_of_lift__near="", json__x=""
    )
    module = import_file(path, local)
    assert module.near.__file__ == str(tmp_path / "parts_of_lift" / "near.py")
    assert module.json.loads("1") == 1
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json.x")


def test_a_folder_of_the_same_name_elsewhere_does_not_take_the_place_of_the_one_beside_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project" / "models").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "project")])
    path, local = beside(tmp_path / "tasks", lift="from models.net import FOUND", models__net="FOUND = 1")
    assert import_file(path, local).FOUND == 1


def test_a_package_whose_tasks_cannot_be_imported_is_left_out_and_named(capfd: pytest.CaptureFixture[str]) -> None:
    broken = importlib.metadata.EntryPoint("theirs", "no_such_module_of_theirs", "isaaclab.tasks")
    fine = importlib.metadata.EntryPoint("ours", "json", "isaaclab.tasks")
    isaaclab.load_tasks([broken, fine])
    assert "No module named" in isaaclab._left_out.pop("no_such_module_of_theirs")
    assert isaaclab._left_out == {}
    assert "ModuleNotFoundError" in capfd.readouterr().err
