"""Files of a run, opened once: the open file is checked, not its path, which may lead elsewhere a moment later."""

from __future__ import annotations

import os
import stat
import sys
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
