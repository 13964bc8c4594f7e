"""The source of a task: the module of a cell, its versions, and the one that a call uses.

A version is the module and the files that it needs, read once, hashed and kept.

A module on disk may be written at any moment, by another notebook or an editor. A version is therefore read once. Its
hashes are those of the bytes that were read, and these bytes are kept in a folder of their own, which no later edit
changes. A training, a preview or a check uses the kept files.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import dataclasses
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.settings import Root, options
from rlnb.spec import Task
from rlnb.storage import access, entries, files
from rlnb.storage.access import another_owner, others, replacers
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


def read_version(module: Path, held: Mapping[Path, bytes]) -> Version:
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


def keep_version(version: Version) -> Path | None:
    """Write a version to a folder of its own, unless it is there; return its module there.

    Returns:
        The module; None if the folder cannot be written, or another user has made it.
    """
    return _kept(version, history(version.module))


def stored_version(version: Version) -> Path:
    """Return the module of a version on disk: in the history, or else in a folder of this process.

    The second one serves where the history cannot be written, and where another user has made the same version.

    Raises:
        RlnbError: Neither folder can be written.
    """
    with contextlib.suppress(OSError):  # no folder for temporary files can be written
        if kept := keep_version(version) or _kept(version, _private_folder()):
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
    """Keep a version below a folder, as :func:`keep_version` does."""
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


# -- cell ------------------------------------------------------------------------------------------------------------


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


def fail_cell(root: Root, name: str, reason: str) -> None:
    """Note that the cell of a task could not be saved."""
    _failed[module_path(root, name)] = reason


def refuse_failed_cell(root: Root, name: str) -> None:
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
    _refuse_to_replace(name, path)
    content = f"# rlnb task {name!r} of {owner!r}\n{body}".encode()
    content += b"" if content.endswith(b"\n") else b"\n"
    if path.is_file():
        first, _, old_body = entries.read_text(path).partition("\n")
        if first.startswith("# rlnb task ") and not first.startswith(f"# rlnb task {name!r} of "):
            raise RlnbError(f"{path} already holds another task ({first[2:]}). Use a name that gives another file.")
        old_owner = re.search(r" of (['\"])(.*)\1$", first)
        if old_owner and old_owner.group(2) != owner and old_body.rstrip("\n") != body.rstrip("\n"):
            tell(f"It replaces the version of {old_owner.group(2)}, {_kept_copy(path)}.")
    files.make_folder(root.tasks)
    files.write_bytes(path, content)
    _run_here[path] = content
    _failed.pop(path, None)
    return path


def _refuse_to_replace(name: str, module: Path) -> None:
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


def _kept_copy(module: Path) -> str:
    """Keep the version of a module that is about to be replaced; return a clause that names the copy."""
    try:
        copy = keep_version(read_version(module, {}))
    except (OSError, SyntaxError):
        copy = None
    return f"which is kept as {copy}" if copy else "of which no copy could be kept"


# -- the version that a call uses ------------------------------------------------------------------------------------


_asked_for: dict[tuple[object, ...], Path] = {}
"""Kept modules of the versions that this kernel has named by a task, by the task's source and hashes."""
_told: dict[tuple[str, Path], str] = {}
"""The last sentence of each kind about each file that was shown, so that it is not repeated."""


def pinned(task: Task) -> Task:
    """Return a task whose source is a copy that no edit changes, and whose hashes are those of this copy.

    A task of a cell stands for the cell, so that an edit of it is used, and a sentence says so. It does not stand for
    the cell of another notebook that has taken the same name: then the version that this kernel has run, or that
    the task named, is used. All other tasks, such as those of a run's copy, stand for the files that were hashed.

    Raises:
        RlnbError: The cell was not saved, or a file cannot be read or is not the recorded one.
    """
    if task.source is None:
        return task
    module = Path(task.source)
    root = Root(module.absolute().parent.parent)
    if module != module_path(root, task.id):
        return _with(task, verified(module, task.source_sha256, task.files), module)
    refuse_failed_cell(root, task.id)
    current = version_in_use(module, task.id)
    if changed := _changed(task, current):
        if kept := _asked_for.get(_key(module, task.source_sha256, task.files)):
            asked_for = verified(kept, task.source_sha256, task.files)
            if module not in run_here() and asked_for.notebook != current.notebook:
                _tell_taken(task, asked_for, current)
                return _with(task, asked_for, kept)
        refuse_files_of_others(task.id, (module.parent / name for name in changed))
        _tell_changed(task, changed, current)
    return _with(task, current, stored_version(current))


def named_version(name: str, module: Path, current: Version) -> Task:
    """Return the task of a cell with the hashes of a version, which is kept for the case that the cell changes."""
    _asked_for[_key(module, current.sha256, current.files)] = stored_version(current)
    return Task(id=name, source=str(module), source_sha256=current.sha256, files=current.files)


def _key(module: Path, digest: str | None, files: Mapping[str, str]) -> tuple[object, ...]:
    return str(module), digest, *sorted(files.items())


def _with(task: Task, chosen: Version, source: Path) -> Task:
    return dataclasses.replace(task, source=str(source), source_sha256=chosen.sha256, files=chosen.files)


def version_in_use(module: Path, name: str) -> Version:
    """Return the version of a cell's module that this kernel uses now: that of its own cell, or else that on disk.

    Raises:
        RlnbError: A file cannot be read, or is not valid Python.
    """
    try:
        current = read_version(module, run_here())
    except OSError as exc:
        raise RlnbError(f"The module of the task {name!r} cannot be read: {exc}. Run its cell again.") from exc
    except (SyntaxError, ValueError) as exc:  # a null byte is a ValueError
        raise RlnbError(f"The module of the task {name!r} is not valid Python: {exc}. Run its cell again.") from exc

    for file in (module, *(module.parent / other for other in current.others)):
        if (content := run_here().get(file)) is not None:
            _tell_replaced(Version(module=file, content=content, others={}), name)
    return current


def refuse_files_of_others(name: str, paths: Iterable[Path]) -> None:
    """Refuse to use files of another user for a task, except for those that this kernel itself has saved.

    Raises:
        RlnbError: A file belongs to another user.
    """
    for file in paths:
        if options.team or file in run_here():
            continue
        if reason := others(file):
            raise RlnbError(
                f"The task {name!r} would execute {file}, which {reason}. Use rlnb.task({name!r}, trust=True) if you "
                "trust all who can write it, or set rlnb.options.root to a folder of your own."
            )


def _tell_replaced(own: Version, name: str) -> None:
    """Say that the module on disk is not the one that this kernel has saved."""
    try:
        on_disk = Version(module=own.module, content=entries.read_bytes(own.module), others={})
    except OSError:
        return  # deleted; the kernel still has its version
    if on_disk.sha256 == own.sha256:
        _told.pop(("replaced", own.module), None)
        return
    who = on_disk.notebook
    change = f"{who} has replaced" if who != own.notebook else "another program has changed"
    _tell(
        "replaced",
        own.module,
        f"{name}: {change} {own.module} since this kernel ran the task's cell. This kernel's version, "
        f"{own.sha256[:SHOWN_DIGITS]}, is used, not {on_disk.sha256[:SHOWN_DIGITS]}.",
    )


def _changed(task: Task, current: Version) -> list[str]:
    """Return the files that are not as a task has named them; empty for a task without hashes."""
    named = {current.module.name: task.source_sha256, **task.files}
    contents = {current.module.name: current.content, **current.others}
    if task.source_sha256 is None:
        return []
    return [name for name, content in contents.items() if not has_hash(content, named.get(name, ""))]


def _tell_taken(task: Task, asked_for: Version, current: Version) -> None:
    _tell(
        "changed",
        current.module,
        f"{task.id}: {current.notebook or 'another program'} has replaced {current.module} since rlnb.task(...). The "
        f"version that it named, {asked_for.sha256[:SHOWN_DIGITS]}, is used. Use rlnb.task({task.id!r}) for the "
        "new one.",
    )


def _tell_changed(task: Task, changed: list[str], current: Version) -> None:
    what = "the cell" if current.module.name in changed else ", ".join(changed)
    _tell(
        "changed",
        current.module,
        f"{task.id}: {what} has changed since rlnb.task(...). The new version, {current.sha256[:SHOWN_DIGITS]}, is "
        "used.",
    )


def _tell(kind: str, module: Path, sentence: str) -> None:
    if _told.get((kind, module)) != sentence:
        _told[kind, module] = sentence
        print(sentence, flush=True)
