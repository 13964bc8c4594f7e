"""Do something as another user of this machine, who may not be able to read where Python is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ANN, EVE = 54_001, 54_002
"""User and group ids of two people who share a folder."""
_AS_USER = """
import grp, importlib, os, pwd, sys
import rlnb, rlnb.node.__main__
for name in ("records.notes", "records.sharing", "run.pruning", "tasks.cell", "training.checks", "storage.folder"):
    importlib.import_module(f"rlnb.{name}")
list(rlnb.runs())
uid = int(sys.argv[1])
os.setgroups([int(group) for group in sys.argv[2].split(",") if group])
os.setgid(uid)
os.setuid(uid)
os.umask(int(sys.argv[3], 8))
os.environ["HOME"] = os.getcwd()
exec(sys.argv[4])
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_user(uid: int, code: str, root: Path, *, groups: tuple[int, ...] = (), umask: int = 0o022) -> str:
    """Execute code as a user, with rlnb's main modules imported, and return what it prints. Its errors are printed too.

    Args:
        uid: The user's id, also that of the user's own group.
        code: The code.
        root: The folder of runs.
        groups: Further groups of the user.
        umask: The user's umask.
    """
    argv = [sys.executable, "-c", _AS_USER, str(uid), ",".join(map(str, groups)), f"{umask:o}", code]
    env = {**os.environ, "RLNB_ROOT": str(root)}
    done = subprocess.run(argv, env=env, cwd=root, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
