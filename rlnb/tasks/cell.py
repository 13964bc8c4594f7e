"""The module of a ``%%task`` cell: its path, and the version of it that this kernel has run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.settings import Root, options
from rlnb.storage import access, entries, files
from rlnb.storage.access import another_owner
from rlnb.tasks import version


def module_path(root: Root, name: str) -> Path:
    """Return the path of the module of a ``%%task`` cell, e.g. ``tasks/lift_cube_rgb.py``."""
    return root.tasks / (re.sub(r"\W+", "_", name).strip("_").lower() + ".py")


_failed: dict[Path, str] = {}
"""Modules whose cells could not be saved, with the reason. An older version of the module may exist."""
_run_here: dict[Path, bytes] = {}
"""Modules whose cells this kernel has run, as it saved them. Another notebook may have replaced the files since."""


def run_here() -> Mapping[Path, bytes]:
    """Return the modules whose cells this kernel has run, as it saved them, by path."""
    return _run_here


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

    A version of another notebook is kept in the folder ``history``. This kernel uses the new one from now on, also if
    another notebook replaces the module.

    Args:
        root: Folder of task modules.
        name: Name of the task.
        body: Text of the cell.
        owner: Name of the cell's notebook.
        tell: Called with a sentence about the version that it replaces, if that is not this notebook's own.

    Raises:
        SyntaxError: The body is not valid Python.
        RlnbError: A task of another name, or of another user, has that module, or other users can replace it.
    """
    path = module_path(root, name)
    compile(body, str(path), "exec")
    access.refuse_shared(root.path)
    _refuse_another_users(name, path)
    content = f"# rlnb task {name!r} of {owner!r}\n{body}".encode()
    content += b"" if content.endswith(b"\n") else b"\n"
    if path.is_file():
        first, _, old_body = entries.read_text(path).partition("\n")
        if first.startswith("# rlnb task ") and not first.startswith(f"# rlnb task {name!r} of "):
            raise RlnbError(f"{path} already holds another task ({first[2:]}). Use a name that gives another file.")
        old_owner = re.search(r" of (['\"])(.*)\1$", first)
        if old_owner and old_owner.group(2) != owner and old_body.rstrip("\n") != body.rstrip("\n"):
            tell(f"It replaces the version of {old_owner.group(2)}, {_kept(path)}.")
    files.make_folder(root.tasks)
    files.write_bytes(path, content)
    _run_here[path] = content
    _failed.pop(path, None)
    return path


def _refuse_another_users(name: str, module: Path) -> None:
    """Refuse to replace the module of another user, who would miss it, and whose text may not be copied as this one's.

    Raises:
        RlnbError: The module belongs to another user.
    """
    with contextlib.suppress(FileNotFoundError):
        if not options.team and (owner := another_owner(module, module.parent)) is not None:
            raise RlnbError(
                f"The task {name!r} is the user {owner}'s: {module} belongs to that user. Use another name, or set "
                "rlnb.options.root to a folder of your own."
            )


def _kept(module: Path) -> str:
    """Keep the version of a module that is about to be replaced; return a clause that names the copy."""
    try:
        copy = version.keep(version.read(module, {}))
    except (OSError, SyntaxError):
        copy = None
    return f"which is kept as {copy}" if copy else "of which no copy could be kept"
