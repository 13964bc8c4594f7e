"""Do something as another user of this machine, who may not be able to read where Python is installed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ANN, EVE = 54_001, 54_002
"""User and group ids of two people who share a folder."""
FOLDERS = ("runs", "tasks", "sweeps", "cards", "reports", "arrays", "simulators", "simulators/kernels")
"""Folders that an administrator makes in a root for several users, as the documentation says."""
RECORDED = next((Path(__file__).parents[1] / "records" / "of_0_1_0").glob("*-865d"))
"""A run that an earlier version has made."""
_AS_USER = """
import grp, importlib, os, pwd, sys
import rlnb, rlnb.node.__main__
for name in ("records.notes", "storage.access", "run.pruning", "tasks.source", "training.checks"):
    importlib.import_module(f"rlnb.{name}")
root, rlnb.options.root = rlnb.options.root, sys.argv[6]
list(rlnb.runs())
exec(sys.argv[5])
rlnb.options.root = root
uid = int(sys.argv[1])
os.setgroups([int(group) for group in sys.argv[2].split(",") if group])
os.setgid(uid)
os.setuid(uid)
os.umask(int(sys.argv[3], 8))
os.environ["HOME"] = os.getcwd()
exec(sys.argv[4])
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_user(
    uid: int, code: str, root: Path, *, before: str = "", groups: tuple[int, ...] = (), umask: int = 0o022
) -> str:
    """Execute code as a user, with rlnb's main modules imported, and return what it prints. Its errors are printed too.

    Args:
        uid: The user's id, also that of the user's own group.
        code: The code.
        root: The folder of runs.
        before: Code that is executed before the process becomes the user, such as further imports. Its root is the
            folder of :data:`RECORDED`.
        groups: Further groups of the user.
        umask: The user's umask.
    """
    argv = [
        sys.executable,
        "-c",
        _AS_USER,
        str(uid),
        ",".join(map(str, groups)),
        f"{umask:o}",
        code,
        before,
        str(RECORDED.parent),
    ]
    env = {**os.environ, "RLNB_ROOT": str(root)}
    done = subprocess.run(argv, env=env, cwd=root, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@contextlib.contextmanager
def shared_root() -> Iterator[Path]:
    """Make a folder of runs as an administrator makes it for several users, and beside it Ann's home, "ann"."""
    with tempfile.TemporaryDirectory(prefix="rlnb-users-") as name:  # those of pytest can be entered by root alone
        Path(name).chmod(0o755)
        root = Path(name, "rlnb-runs")
        for folder in (root, *(root / name for name in FOLDERS)):
            folder.mkdir()
            folder.chmod(0o1777)
        given(Path(name, "ann"), ANN)
        yield root


def given(path: Path, uid: int) -> Path:
    """Give a file, or a folder with all that it holds, to a user. The folder is made if it does not exist."""
    if not os.path.lexists(path):
        path.mkdir()
    for entry in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
        os.chown(entry, uid, uid, follow_symlinks=False)
    return path


def link(path: Path, target: Path) -> None:
    """Make a link that belongs to the other user."""
    path.symlink_to(target)
    given(path, EVE)
