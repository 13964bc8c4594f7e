"""Whether a folder of runs is safe from its other users: what they can replace there, this user would execute."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import Problem, RlnbError
from rlnb.settings import options
from rlnb.storage.owner import replacers

_OWN = "rlnb.options.root, or RLNB_ROOT"
TEAM = "rlnb.options.team = True, or RLNB_TEAM=1, trusts everybody who can write there"


def problems_of(root: Path) -> Iterator[Problem]:
    """Yield a problem for each folder of a root in which other users can replace what this user makes.

    Args:
        root: The folder of runs, tasks and sweeps.
    """
    if options.team:
        return
    for folder in (root, *_folders(root)):
        with contextlib.suppress(OSError):  # it does not exist yet, or no longer
            if who := replacers(folder):
                yield Problem(
                    what=f"{who[0].upper()}{who[1:]} can replace what you make in {folder}, and so decide what is "
                    "executed as you.",
                    fix=_fix(folder),
                )


def refuse_shared(root: Path) -> None:
    """Refuse to make anything that is executed later in a root in which other users can replace it.

    Raises:
        RlnbError: The root is such a folder.
    """
    for problem in problems_of(root):
        raise RlnbError(f"{problem.what} {problem.fix}")


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(root) if entry.is_dir())
    except OSError:
        return []


def _fix(folder: Path) -> str:
    status = os.stat(folder)
    if status.st_uid == os.getuid():
        return f"In a shell: chmod go-w {shlex.quote(str(folder))}. Or else {TEAM}."
    if status.st_uid == 0:
        sticky = f"chmod +t {shlex.quote(str(folder))}"
        return f"Ask an administrator for {sticky}, or use a folder of yours: {_OWN}. Or else {TEAM}."
    return f"Use a folder of yours: {_OWN}. Or else {TEAM}."
