"""One version of a task's source: its module and the files that it needs, read once, hashed and kept.

A module on disk may be written at any moment, by another notebook or an editor. A version is therefore read once. Its
hashes are those of the bytes that were read, and these bytes are kept in a folder of their own, which no later edit
changes. A training, a preview or a check uses the kept files.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.settings import options
from rlnb.storage import entries, files
from rlnb.storage.access import others, replacers
from rlnb.storage.entries import files_below
from rlnb.storage.files import CELL_HEADER, has_hash, source_hash

SHOWN_DIGITS = 7
"""Digits of a hash that a text names."""
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
_LARGE_BYTES = 2**20
_HISTORY = "history"
_private: dict[int, Path] = {}
"""Folder of this user alone, by the id of the process that has made it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """The source of a task as it was read."""

    module: Path
    """Path that the module was read from."""
    content: bytes
    """Content of the module."""
    others: Mapping[str, bytes]
    """Content of the further files, by path relative to the module's folder."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the module without its header line."""
        return source_hash(self.content)

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of the further files, by path relative to the module's folder."""
        return {name: source_hash(content) for name, content in sorted(self.others.items())}

    @property
    def notebook(self) -> str:
        """Notebook or script that the module's header names; empty without a header."""
        match = re.match(CELL_HEADER + rb".* of (['\"])(.*)\1\n", self.content)
        return match.group(2).decode("utf-8", "replace") if match else ""


def read(module: Path, held: Mapping[Path, bytes]) -> Version:
    """Read a task's module, and the local files that it imports or names in its own folder.

    Args:
        module: Path of the module.
        held: Contents that take the place of those on disk, by path.

    Raises:
        OSError: A file cannot be read.
        SyntaxError: A module is not valid Python.
    """
    contents: dict[Path, bytes] = {module: held[module] if module in held else entries.read_bytes(module)}
    todo = [module]
    while todo:
        source = todo.pop()
        for path in _named_files(contents[source], module.parent, source.parent, held):
            if path not in contents:
                contents[path] = held[path] if path in held else entries.read_bytes(path)
                todo += [path] if path.suffix == ".py" else []
    content = contents.pop(module)
    others = {str(path.relative_to(module.parent)): contents[path] for path in sorted(contents)}
    return Version(module=module, content=content, others=others)


def _named_files(source: bytes, folder: Path, place: Path, held: Mapping[Path, bytes]) -> Iterator[Path]:
    """Yield the files in a task's folder that a module imports, and those there or beside the module that it names."""
    for node in ast.walk(ast.parse(source)):
        paths: Iterable[Path] = ()
        if isinstance(node, ast.Import):
            paths = [path for alias in node.names for path in _imported(folder, alias.name.split(".")[0])]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            paths = _imported(folder, node.module.split(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_SHIPPED):
            name = Path(node.value)
            paths = () if name.is_absolute() or ".." in name.parts else dict.fromkeys((folder / name, place / name))
        yield from (path for path in paths if path in held or path.is_file())


def _imported(folder: Path, name: str) -> list[Path]:
    """Return the files that the import of a name may execute: all modules of a package, or else one module.

    A package may have no ``__init__.py``. Python then prefers a module of the same name.
    """
    module, package = folder / f"{name}.py", folder / name
    if not (package / "__init__.py").is_file() and (module.is_file() or name == _HISTORY):
        return [module]
    modules = files_below(package, lambda name: name.endswith(".py") and not name.startswith("."))
    return sorted(modules) or [module]


def history(module: Path) -> Path:
    """Return the folder that keeps the versions of the cells beside a module."""
    return module.parent / _HISTORY


def keep(version: Version) -> Path | None:
    """Write a version to a folder of its own, unless it is there; return its module there.

    Returns:
        The module; None if the folder cannot be written, or another user has made it.
    """
    return _kept(version, history(version.module))


def stored(version: Version) -> Path:
    """Return the module of a version on disk: in the history, or else in a folder of this process.

    The second one serves where the history cannot be written, and where another user has made the same version.

    Raises:
        RlnbError: Neither folder can be written.
    """
    with contextlib.suppress(OSError):  # no folder for temporary files can be written
        if kept := keep(version) or _kept(version, _private_folder()):
            return kept
    raise RlnbError(
        f"The version of {version.module} that this kernel uses cannot be written, neither to "
        f"{history(version.module)} nor to a temporary folder. Free space on one of them, or set TMPDIR to a "
        "folder that you can write to."
    )


def _private_folder() -> Path:
    """Return a folder that only this user can read, and that is removed when this process ends."""
    folder, pid = _private.get(os.getpid()), os.getpid()
    if folder is None or not folder.is_dir():  # or a cleaner of temporary folders has removed it
        folder = _private[pid] = Path(tempfile.mkdtemp(prefix="rlnb-versions-"))
        atexit.register(_remove, folder, pid)
    return folder


def _remove(folder: Path, pid: int) -> None:
    """Remove a folder, unless this is a fork of the process that has made it."""
    if os.getpid() == pid:
        entries.remove_tree(folder, ignore_errors=True)


def _kept(version: Version, root: Path) -> Path | None:
    """Keep a version below a folder, as :func:`keep` does."""
    contents = {version.module.name: version.content, **version.others}
    key = hashlib.sha256()
    for name, content in contents.items():
        key.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    folder = root / f"{version.module.stem}-{key.hexdigest()[:12]}"
    try:
        if not _is_safe(root):
            return None
        if not folder.exists():
            _write(folder, contents)
        is_own = options.team or not others(folder)
        is_whole = all(entries.read_bytes(folder / name) == content for name, content in contents.items())
    except OSError:
        return None
    if is_own and not is_whole:  # edited by hand
        return _repaired(folder, contents, version.module.name)
    return folder / version.module.name if is_own else None


def _is_safe(root: Path) -> bool:
    """Make a folder for versions; return whether no other user can replace what is kept in it."""
    try:
        files.make_folder(root)
    except RlnbError:  # a link of another user
        return False
    return options.team or not replacers(root)


def _repaired(folder: Path, contents: Mapping[str, bytes], module: str) -> Path | None:
    """Write a kept version again."""
    try:
        entries.rename(folder, f"{folder.name}-edited-{secrets.token_hex(4)}")
        _write(folder, contents)
    except OSError:
        return None
    return folder / module


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files to a hidden folder and rename it, so that the folder appears as a whole."""
    files.make_folder(folder.parent)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        for name, content in contents.items():
            files.make_folder((draft / name).parent)
            if not _linked(folder, name, content, draft / name):
                files.write_bytes(draft / name, content)
        with contextlib.suppress(OSError):  # another process has just written the same version
            entries.rename(draft, folder.name)
    finally:
        entries.remove_tree(draft, ignore_errors=True)


def _linked(folder: Path, name: str, content: bytes, target: Path) -> bool:
    """Link a large file to the same one of another version, so that an edit of a cell copies no meshes."""
    if len(content) < _LARGE_BYTES:
        return False
    for other in entries.matching(folder.parent, f"{folder.name.rpartition('-')[0]}-*"):
        with contextlib.suppress(OSError):
            status = os.lstat(other / name)
            is_own = status.st_uid == os.lstat(target.parent).st_uid  # another user could edit the file later
            if is_own and status.st_size == len(content) and entries.read_bytes(other / name) == content:
                entries.link(other / name, target)
                return True
    return False


def verified(module: Path, digest: str | None, others: Mapping[str, str]) -> Version:
    """Read files that are kept elsewhere, such as a run's copies, and compare them with their recorded hashes.

    Args:
        module: Path of the module.
        digest: Recorded SHA-256 of the module; None if there is none.
        others: Recorded SHA-256 of the further files, by path relative to the module's folder.

    Raises:
        RlnbError: A file cannot be read, or is not the recorded one.
    """
    contents = {}
    for name, expected in {module.name: digest, **others}.items():
        path = module.parent / name
        try:
            contents[name] = entries.read_bytes(path)
        except OSError as exc:
            raise RlnbError(f"{path}, which the task needs, cannot be read: {exc.strerror or exc}.") from exc
        if not has_hash(contents[name], expected):
            raise RlnbError(
                f"{path} is not the recorded version: its sha256 is {source_hash(contents[name])[:SHOWN_DIGITS]}, not "
                f"{(expected or '')[:SHOWN_DIGITS]}. Put that version back, or use the task by its name."
            )
    return Version(module=module, content=contents.pop(module.name), others=contents)
