"""The files below a folder that anyone may have filled: a bounded number, the nearest first. Standard library only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from rlnb.storage.entries import scanned
from rlnb.storage.files import warn_once

MOST_FOLDERS = 500
"""Largest number of folders that are read. The logs of a training have a few, and a home has a hundred thousand."""
MOST_FILES = 100_000
"""Number of files and links after which no further folder is read."""


def files_below(folder: Path, named: Callable[[str], bool] = lambda name: True) -> Iterator[Path]:
    """Yield the files and links below a folder, the nearest to it first.

    Links to folders are not followed, except ``folder`` itself. Folders that cannot be read are skipped. A warning
    names a folder that has too many to be read in a moment.

    Args:
        folder: The folder.
        named: Says of a file's name whether to yield the file.
    """
    waiting, folders, count = deque([folder]), 1, 0
    while waiting and count <= MOST_FILES:
        here = waiting.popleft()
        try:
            with scanned(here) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        count += 1
                        if named(entry.name):
                            yield here / entry.name
                    elif (folders := folders + 1) <= MOST_FOLDERS:
                        waiting.append(here / entry.name)
        except OSError:
            continue
    if waiting or folders > MOST_FOLDERS:
        warn_once(f"{folder} has more than {MOST_FOLDERS:,} folders or {MOST_FILES:,} files. The rest is not read.")


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder at and below a folder with the names of its folders and of its files, like :func:`os.walk`.

    No link below it is followed, and no link of another user on the way to it. A caller may remove names of folders.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with scanned(here) as entries:
                kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            continue
        below = [name for name, is_folder in kinds if is_folder]
        yield here, below, [name for name, is_folder in kinds if not is_folder]
        waiting += [here / name for name in reversed(below)]


def is_small(folder: Path) -> bool:
    """Return whether :func:`files_below` yields all files below a folder."""
    folders = count = 0
    for _, _, names in walk(folder):
        folders, count = folders + 1, count + len(names)
        if folders > MOST_FOLDERS or count > MOST_FILES:
            return False
    return True
