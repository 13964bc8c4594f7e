"""The version of a task's source that a call uses: this kernel's own, the one that the task names, or the newest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.settings import Root, options
from rlnb.spec import Task
from rlnb.storage import entries
from rlnb.storage.access import others
from rlnb.tasks import version
from rlnb.tasks.cell import module_path, refuse_failed, run_here
from rlnb.tasks.version import SHOWN_DIGITS, Version

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
        return _with(task, version.verified(module, task.source_sha256, task.files), module)
    refuse_failed(root, task.id)
    current = in_use(module, task.id)
    if changed := _changed(task, current):
        if kept := _asked_for.get(_key(module, task.source_sha256, task.files)):
            asked_for = version.verified(kept, task.source_sha256, task.files)
            if module not in run_here() and asked_for.notebook != current.notebook:
                _tell_taken(task, asked_for, current)
                return _with(task, asked_for, kept)
        refuse_another_users(task.id, (module.parent / name for name in changed))
        _tell_changed(task, changed, current)
    return _with(task, current, version.stored(current))


def named(name: str, module: Path, current: Version) -> Task:
    """Return the task of a cell with the hashes of a version, which is kept for the case that the cell changes."""
    _asked_for[_key(module, current.sha256, current.files)] = version.stored(current)
    return Task(id=name, source=str(module), source_sha256=current.sha256, files=current.files)


def _key(module: Path, digest: str | None, files: Mapping[str, str]) -> tuple[object, ...]:
    return str(module), digest, *sorted(files.items())


def _with(task: Task, chosen: Version, source: Path) -> Task:
    return dataclasses.replace(task, source=str(source), source_sha256=chosen.sha256, files=chosen.files)


def in_use(module: Path, name: str) -> Version:
    """Return the version of a cell's module that this kernel uses now: that of its own cell, or else that on disk.

    Raises:
        RlnbError: A file cannot be read, or is not valid Python.
    """
    try:
        current = version.read(module, run_here())
    except OSError as exc:
        raise RlnbError(f"The module of the task {name!r} cannot be read: {exc}. Run its cell again.") from exc
    except (SyntaxError, ValueError) as exc:  # a null byte is a ValueError
        raise RlnbError(f"The module of the task {name!r} is not valid Python: {exc}. Run its cell again.") from exc

    for file in (module, *(module.parent / other for other in current.others)):
        if (content := run_here().get(file)) is not None:
            _tell_replaced(Version(module=file, content=content, others={}), name)
    return current


def refuse_another_users(name: str, paths: Iterable[Path]) -> None:
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
    return [name for name, content in contents.items() if not version.has_hash(content, named.get(name, ""))]


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
