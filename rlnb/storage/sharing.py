"""Whether a folder of runs is safe from its other users: what they can replace there, this user would execute."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import Problem, RlnbError
from rlnb.settings import options
from rlnb.storage.owner import adders, renamers, replacers

EXECUTED = ("runs", "tasks")
"""Folders of a root from which trainings, evaluations and previews execute what this user has put there."""
_OWN = "rlnb.options.root, or RLNB_ROOT"
_TEAM = "To trust everybody who can write there instead: rlnb.options.team = True, or RLNB_TEAM=1."


def problems_of(root: Path, names: tuple[str, ...] = EXECUTED) -> Iterator[Problem]:
    """Yield a problem for each folder in which other users can replace what this user executes from a root.

    Args:
        root: The folder of runs, tasks and sweeps. It need not exist yet.
        names: The folders of the root from which something will be executed.
    """
    if options.team:
        return
    for folder, who in (*_exposed(root), *(one for name in names for one in _itself(root / name))):
        yield Problem(
            what=f"{who[0].upper()}{who[1:]} can replace what you make in {folder}, and so decide what is executed as "
            "you.",
            fix=_fix(folder, root),
        )


def refuse_shared(root: Path, names: tuple[str, ...] = EXECUTED) -> None:
    """Refuse to make anything that is executed later in a root in which other users can replace it.

    Args:
        root: The folder of runs, tasks and sweeps.
        names: The folders of the root from which something will be executed.

    Raises:
        RlnbError: The root is such a folder.
    """
    if problems := [f"{problem.what} {problem.fix}" for problem in problems_of(root, names)]:
        raise RlnbError("\n".join(problems))


def exposed(folder: Path) -> str:
    """Return who can replace what is in a folder, and where, as the end of a sentence; "" if only root can."""
    return next((f"{who}, who can rename what is in {where}" for where, who in _exposed(folder)), "")


def adders_to(folder: Path) -> str:
    """Return who else can put a module into a folder from which this user imports, as the end of a sentence; or ""."""
    if options.team:
        return ""
    with contextlib.suppress(OSError):
        if who := adders(folder):
            return f"{who}, who can write to it"
    return exposed(folder)


def _exposed(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield a folder, and each one above it, in which other users can rename or replace what lies there, and who can.

    The owners of the folders above are trusted, as administrators and the heads of projects are.
    """
    yield from _itself(folder)
    for above in dict.fromkeys((*folder.absolute().parents, *folder.resolve().parents)):
        with contextlib.suppress(OSError):  # it does not exist yet, or no longer
            if who := renamers(above):
                yield above, who


def _itself(folder: Path) -> Iterator[tuple[Path, str]]:
    with contextlib.suppress(OSError):
        if who := replacers(folder):
            yield folder, who


def _fix(folder: Path, root: Path) -> str:
    owner = os.stat(folder).st_uid
    if owner == os.getuid():
        command = "chmod go-w" if folder in root.absolute().parents else "chmod -R go-w"
        return f"In a shell: {command} {shlex.quote(str(folder))}. {_TEAM}"
    if owner == 0:
        sticky = f"chmod +t {shlex.quote(str(folder))}"
        return f"Ask an administrator for {sticky}, or use a folder of yours: {_OWN}. {_TEAM}"
    return f"Use a folder of yours: {_OWN}. {_TEAM}"
