"""Files of a run, opened once: the open file is checked, not its path, which may lead elsewhere a moment later."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def opened(path: Path, folder: Path) -> BinaryIO | None:
    """Open a plain file (no pipe, no device) in a folder; None if there is none, or a symbolic link is on the way.

    The folder itself may be a link of this user or of root.

    Args:
        path: The file.
        folder: A folder above it, such as that of a run.
    """
    try:
        parts = path.relative_to(folder).parts
        return _regular(_within(folder, parts) if sys.platform != "win32" else _on_windows(folder, parts))
    except (OSError, ValueError):  # such as a name that is too long
        return None


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder at and below a folder with the names of its folders and of its files, like :func:`os.walk`.

    No link below it is followed, whatever takes the place of a folder meanwhile.
    """
    if sys.platform == "win32":
        yield from ((Path(name), below, names) for name, below, names in os.walk(folder))
        return
    try:
        here = _folder(folder)
    except OSError:  # the run was deleted at this moment
        return
    try:
        for name, below, names, _ in os.fwalk(".", dir_fd=here):
            yield folder / name, below, names
    finally:
        os.close(here)


def size_of(file: BinaryIO) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def _within(folder: Path, parts: tuple[str, ...]) -> int:
    """Return a descriptor of a file, to which no part of the path below the folder leads through a link."""
    here = _folder(folder)
    try:
        for number, name in enumerate(parts, 1):
            if name == "..":
                raise ValueError("the path leaves the folder")
            kind = os.O_NONBLOCK if number == len(parts) else os.O_DIRECTORY  # a pipe would block
            below = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=here)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _folder(path: Path) -> int:
    """Return a descriptor of a folder. A link of another user is not followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    try:
        return os.open(path, flags | os.O_NOFOLLOW)
    except OSError:
        if os.lstat(path).st_uid not in (0, os.getuid()):
            raise
        return os.open(path, flags)


def _on_windows(folder: Path, parts: tuple[str, ...]) -> int:
    path = folder.joinpath(*parts)
    if path.resolve() != folder.resolve().joinpath(*parts):
        raise ValueError("the path leads through a link")
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def _regular(descriptor: int) -> BinaryIO:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("the file is not a regular one")
