"""The module of a ``%%task`` cell: its path, its hash, and the files that it needs."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable
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


def write_module(root: Root, name: str, body: str, owner: str) -> Path:
    """Save the body of a ``%%task`` cell as a module. The body is compiled but not executed.

    Args:
        root: Folder of task modules.
        name: Name of the task.
        body: Text of the cell.
        owner: Name of the cell's notebook.

    Raises:
        SyntaxError: The body is not valid Python.
        RlnbError: Another notebook has a different task of that name.
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
            raise RlnbError(
                f"The task {name!r} belongs to {old_owner.group(2)}, with another body ({path}). "
                "Use another name for this task, or delete that file."
            )
    files.make_folder(root.tasks)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    files.write_bytes(temporary, (header + body).encode())
    temporary.replace(path)
    return path


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
