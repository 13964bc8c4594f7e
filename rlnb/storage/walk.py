"""The files below a folder that anyone may have filled: a bounded number, the nearest first. Standard library only."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from rlnb.storage.files import warn_once

MOST_FOLDERS = 500
"""Largest number of folders that are read. The logs of a training have a few, and a home has a hundred thousand."""
MOST_FILES = 100_000
"""Largest number of files and links that are yielded."""


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files and links below a folder, the nearest to it first.

    Links to folders are not followed, except ``folder`` itself. Folders that cannot be read are skipped. A warning
    names a folder that has too many to be read in a moment.
    """
    waiting, folders, count = deque([os.fspath(folder)]), 0, 0
    while waiting:
        if folders == MOST_FOLDERS or count > MOST_FILES:
            warn_once(f"{folder} has more than {MOST_FOLDERS:,} folders or {MOST_FILES:,} files. The rest is not read.")
            return
        folders += 1
        try:
            with os.scandir(waiting.popleft()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        count += 1
                        yield Path(entry.path)
        except OSError:
            continue
