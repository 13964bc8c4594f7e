"""Leftovers of killed processes: drafts of runs, and temporary folders of living simulators."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from rlnb.storage import entries, temporary
from rlnb.storage.clock import age_s

LEFT_S = 3600.0
"""Seconds after which a folder is taken to be left over. A draft becomes a run within seconds."""
_DRAFT = re.compile(r"\.\d{8}-\d{6}-.+")
"""Name of a draft of a run; see :func:`rlnb.training.create.create_run`."""
_TEMPORARY = re.compile(r"rlnb-(warm|tensorboard)-\w{8}")
"""Names of temporary folders that the processes that use them have in their arguments."""


def remove_leftovers(runs: Path) -> None:
    """Remove this user's leftovers that no living process uses.

    Args:
        runs: Folder of runs, whose drafts are removed.
    """
    leftovers = [*_old(runs, _DRAFT)]
    with contextlib.suppress(OSError):  # no folder for temporary files can be written
        leftovers += _unused(_old(Path(tempfile.gettempdir()), _TEMPORARY))
    for folder in leftovers:
        entries.remove_tree(folder, ignore_errors=True)
    temporary.tidy()


def _old(parent: Path, names: re.Pattern[str]) -> Iterator[Path]:
    """Yield this user's folders in a folder that have such a name and in which nothing has changed for an hour."""
    try:
        children = [child for child in entries.children(parent) if names.fullmatch(child.name)]
    except OSError:
        return
    for child in children:
        try:
            found = child.lstat()
            own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if own and min(map(age_s, (child, *entries.children(child)))) > LEFT_S:
                yield child
        except OSError:
            continue


def _unused(folders: Iterator[Path]) -> Iterator[Path]:
    """Yield the folders that no process of this machine names in its arguments."""
    processes = " ".join(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    yield from (folder for folder in folders if str(folder) not in processes)
