"""Whose file it is. Who executes what a file says trusts its owner. Standard library only."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def another_owner(path: Path, folder: Path) -> int | None:
    """Return the user id of the owner of a file; None if that is this user.

    A share may give all files to one user. The owner is therefore also compared with that of a file that is made anew.

    Args:
        path: The file, or a link, whose own owner counts.
        folder: Folder of the same file system in which a file is made for the comparison.

    Raises:
        OSError: The file does not exist.
    """
    owner = os.lstat(path).st_uid
    if sys.platform == "win32":  # has no such users
        return None
    return None if owner in (os.getuid(), _owner_here(folder)) else owner


def _owner_here(folder: Path) -> int:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_uid
    except OSError:  # not writable by this user
        return os.getuid()


def printable(text: str, most: int = 500) -> str:
    """Return a text of another user for a message: in one line, without control characters, and not too long."""
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[:most])
    return line if len(text) <= most else f"{line}..."
