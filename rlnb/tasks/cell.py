"""The module of a ``%%task`` cell: its path, its hash, and the files that it needs."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.settings import Root
from rlnb.storage import files

_SHIPPED = (
    ".usd",
    ".usda",
    ".usdc",
    ".usdz",
    ".urdf",
    ".xml",
    ".yaml",
    ".yml",
    ".json",
    ".obj",
    ".stl",
    ".png",
    ".hdr",
)


def module_path(root: Root, name: str) -> Path:
    """Return the path of the module of a ``%%task`` cell, e.g. ``tasks/lift_cube_rgb.py``."""
    return root.tasks / (re.sub(r"\W+", "_", name).strip("_").lower() + ".py")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


_failed: dict[Path, str] = {}
"""Modules whose cells could not be saved, with the reason. An older version of the module may exist."""


def fail(root: Root, name: str, reason: str) -> None:
    """Note that the cell of a task could not be saved."""
    _failed[module_path(root, name)] = reason


def refuse_failed(root: Root, name: str) -> None:
    """Refuse a task whose cell could not be saved.

    Raises:
        RlnbError: The cell had an error. Its older version, if there is one, is not what the user means.
    """
    if reason := _failed.get(module_path(root, name)):
        raise RlnbError(f"The cell of the task {name!r} was not saved: {reason}. Correct it and run it again.")


def write_module(root: Root, name: str, body: str, owner: str, tell: Callable[[str], object] = str) -> Path:
    """Save the body of a ``%%task`` cell as a module. The body is compiled but not executed.

    A version of another notebook is kept in the folder ``history``.

    Args:
        root: Folder of task modules.
        name: Name of the task.
        body: Text of the cell.
        owner: Name of the cell's notebook.
        tell: Called with a sentence about the version that it replaces, if that is not this notebook's own.

    Raises:
        SyntaxError: The body is not valid Python.
        RlnbError: A task of another name has that module.
    """
    path = module_path(root, name)
    compile(body, str(path), "exec")
    header = f"# rlnb task {name!r} of {owner!r}\n"
    if path.is_file():
        first, _, old_body = path.read_text(encoding="utf-8").partition("\n")
        if first.startswith("# rlnb task ") and not first.startswith(f"# rlnb task {name!r} of "):
            raise RlnbError(f"{path} already holds another task ({first[2:]}). Use a name that gives another file.")
        old_owner = re.search(r" of (['\"])(.*)\1$", first)
        if old_owner and old_owner.group(2) != owner and old_body != body:
            tell(f"It replaces the version of {old_owner.group(2)}, which is kept as {_keep(path)}.")
    files.make_folder(root.tasks)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    files.write_bytes(temporary, (header + body).encode())
    temporary.replace(path)
    _failed.pop(path, None)
    return path


def _keep(module: Path) -> Path:
    """Copy a module to the folder of earlier versions; return the copy."""
    history = module.parent / "history"
    files.make_folder(history)
    changed = time.strftime("%Y%m%d-%H%M%S", time.localtime(module.stat().st_mtime))
    copy = history / f"{module.stem}-{changed}-{sha256(module)[:8]}.py"
    files.write_bytes(copy, module.read_bytes())
    return copy


def local_files(module: Path) -> dict[str, str]:
    """Return the SHA-256 of the files that a module imports or names in its own folder, by relative path."""
    digests: dict[str, str] = {}
    todo = [module]
    while todo:
        current = todo.pop()
        for path in _named_files(current, module.parent):
            relative = str(path.relative_to(module.parent))
            if relative not in digests and path != module:
                digests[relative] = sha256(path)
                if path.suffix == ".py":
                    todo.append(path)
    return dict(sorted(digests.items()))


def _named_files(module: Path, folder: Path) -> Iterable[Path]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [f"{alias.name.split('.')[0]}.py" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module.split('.')[0]}.py"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_SHIPPED):
            names = [node.value]
        for name in names:
            path = folder / name
            if not Path(name).is_absolute() and ".." not in Path(name).parts and path.is_file():
                yield path
