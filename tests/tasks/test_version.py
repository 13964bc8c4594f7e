"""The versions of a task's source: the files that belong to one, their hashes, and the copies that are kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.tasks import source

BODY = "import helpers_of_mine\n\nTASK = 1\n"
NOTEBOOK = "lift.ipynb"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_local_files_that_a_module_imports_or_names_are_found_and_hashed(root: Path) -> None:
    folder = root / "tasks"
    (folder / "meshes").mkdir(parents=True)
    texts = {
        "helpers_of_mine.py": "from second_of_mine import table\n",
        "second_of_mine.py": "import json\ntable = 'table.usda'\n",
        "table.usda": "#usda 1.0",
        "meshes/cube.obj": "v 0 0 0",
        "not_named.py": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    body = "import json, torch\nimport helpers_of_mine\nCUBE = 'meshes/cube.obj'\nFAR = '/abs/cube.usd', '../up.usd'\n"
    source.write_module(options.folders, "Lift-Cube", body, NOTEBOOK)
    named = ["helpers_of_mine.py", "meshes/cube.obj", "second_of_mine.py", "table.usda"]
    assert rlnb.task("Lift-Cube").files == {name: sha256(texts[name]) for name in named}


def test_packages_that_a_module_imports_are_found_with_all_their_modules(root: Path) -> None:
    folder = root / "tasks"
    texts = {
        "parts/__init__.py": "",
        "parts/near.py": "from . import far\nimport helpers_of_mine\nTABLE = 'table.usda'",
        "parts/deep/far.py": "",
        "parts/table.usda": "#usda 1.0",
        "helpers_of_mine.py": "",
        "folder/without_init.py": "",
    }
    others = {"parts/data.bin": "", "not_imported/__init__.py": "", "history/x/lift.py": "", "parts.py": ""}
    for name, text in {**texts, **others}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    body = "from parts.near import TABLE\nimport folder.without_init, history\n"
    source.write_module(options.folders, "Lift-Cube", body, NOTEBOOK)
    assert rlnb.task("Lift-Cube").files == {name: sha256(text) for name, text in texts.items()}


def test_modules_that_import_each_other_are_found_once(root: Path) -> None:
    (root / "tasks").mkdir(parents=True)
    (root / "tasks" / "helpers_of_mine.py").write_text("import lift_cube, helpers_of_mine\n")
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    assert list(rlnb.task("Lift-Cube").files) == ["helpers_of_mine.py"]


def kept(root: Path, body: str, mesh: bytes = b"v 0 0 0") -> Path:
    """Keep a version of a module that names a mesh; return its module."""
    contents = {"meshes/cube.obj": mesh}
    module = source.keep_version(source.Version(module=root / "lift.py", content=body.encode(), others=contents))
    assert module is not None
    return module


def test_a_version_is_kept_once_and_whole(tmp_path: Path) -> None:
    first, same, second = kept(tmp_path, "x = 1\n"), kept(tmp_path, "x = 1\n"), kept(tmp_path, "x = 2\n")
    assert first == same != second
    assert first.read_text() == "x = 1\n"
    assert (first.parent / "meshes" / "cube.obj").read_bytes() == b"v 0 0 0"
    assert len([*(tmp_path / "history").iterdir()]) == 2


def test_a_kept_version_that_was_edited_by_hand_is_not_used(tmp_path: Path) -> None:
    first = kept(tmp_path, "x = 1\n")
    first.write_text("x = 3\n")
    assert kept(tmp_path, "x = 1\n").read_text() == "x = 1\n"
    assert "x = 3\n" in [path.read_text() for path in (tmp_path / "history").glob("*/lift.py")], "nothing is lost"


def test_a_large_file_is_not_copied_for_each_edit(tmp_path: Path) -> None:
    mesh = b"v 0 0 0\n" * 2**18
    first, second = kept(tmp_path, "x = 1\n", mesh), kept(tmp_path, "x = 2\n", mesh)
    assert os.path.samefile(first.parent / "meshes" / "cube.obj", second.parent / "meshes" / "cube.obj")
    assert not os.path.samefile(first, second)
    assert (kept(tmp_path, "x = 3\n", mesh[:-1]).parent / "meshes" / "cube.obj").read_bytes() == mesh[:-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_kept_version_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = kept(tmp_path, "x = 1\n").parent
    os.chown(folder, 65_534, 65_534)
    content = source.Version(module=tmp_path / "lift.py", content=b"x = 1\n", others={"meshes/cube.obj": b"v 0 0 0"})
    assert source.keep_version(content) is None


STORED = """
import os, pathlib, sys
from rlnb.tasks import source

module = pathlib.Path(sys.argv[1], "lift.py")
stored = source.stored_version(source.Version(module=module, content=b"x = 1\\n", others={}))
assert stored.read_bytes() == b"x = 1\\n"
if os.fork() == 0:
    sys.exit()
os.wait()
assert stored.is_file(), "the end of a fork removes nothing"
print(stored)
"""


def test_a_version_that_cannot_be_kept_is_stored_until_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "history").touch()
    argv, env = [sys.executable, "-c", STORED, str(tmp_path)], {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
    stored = Path(ended.stdout.strip())
    assert stored.is_relative_to(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_the_notebook_of_a_header_is_read(root: Path) -> None:
    path = source.write_module(options.folders, "Lift", "x = 1\n", "it's mine.ipynb")
    assert source.read_version(path, {}).notebook == "it's mine.ipynb"
    path.write_text("x = 1\n")
    assert source.read_version(path, {}).notebook == ""
