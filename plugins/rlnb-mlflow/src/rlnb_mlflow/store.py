"""The local store, a file of SQLite among the runs, and the lock of the process that makes its tables."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rlnb import RlnbError

FIX = "Set MLFLOW_TRACKING_URI to a store of yours, such as sqlite:////home/anna/mlflow.db."


def folder(runs: Path) -> Path:
    """Return the folder of the store, which is made if it does not exist.

    It is the folder of runs, or the user's own hidden folder in it if other users, who need not be trusted, can make
    entries there. SQLite finds its journal by name, and an entry of that name could be a link to any file of this user.

    Raises:
        RlnbError: The user's folder is a link, or belongs to another user.
    """
    if not _has_strangers(runs):
        return runs
    path = runs / f".mlflow-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(0o755)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as exc:
        raise RlnbError(f"{path} is not a folder of yours. {FIX}") from exc
    status = os.fstat(descriptor)
    os.close(descriptor)
    if status.st_uid not in (os.getuid(), _owner_of_new_files(runs)):
        raise RlnbError(f"{path} belongs to the user {status.st_uid}. {FIX}")
    return path


def tracking_uri(runs: Path) -> str:
    """Return the user's tracking URI; without one, that of the local store."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder(runs.resolve()) / 'mlflow.db'}"


@contextlib.contextmanager
def alone(runs: Path) -> Iterator[None]:
    """Let no other tracker of these runs start meanwhile: two that create the tables of one new file destroy it.

    Raises:
        RlnbError: The lock is a link.
    """
    path = folder(runs) / ".mlflow.lock"
    try:
        descriptor = _opened(path)
    except OSError as exc:
        raise RlnbError(f"{path} cannot be locked: {exc.strerror or exc}. {FIX}") from exc
    with open(descriptor, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _opened(path: Path) -> int:
    """Return a descriptor of the lock, to be written if possible: NFS locks no other one exclusively."""
    flags = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError:  # of another member of a team
        return os.open(path, os.O_RDONLY | flags)


def _has_strangers(runs: Path) -> bool:
    """Return whether users who cannot replace each other's entries of a folder share it."""
    mode = runs.stat().st_mode
    return bool(mode & stat.S_ISVTX) and bool(mode & (stat.S_IWGRP | stat.S_IWOTH))


def _owner_of_new_files(runs: Path) -> int:
    """Return the owner of what this user makes in a folder, since a share may give all files to one user."""
    with tempfile.TemporaryFile(dir=runs) as file:
        return os.fstat(file.fileno()).st_uid
