"""The folder for temporary files of this user's workers, which no other user can enter.

Isaac Lab locks a file of a fixed name in the folder for temporary files, and keeps there what it has downloaded. Where
several users share that folder, the first one's lock would keep all others from training with several ranks.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rlnb.storage.access import is_own, writers

VARIABLE = "TMPDIR"
KEPT_S = 10 * 86400.0
"""Seconds after its last use for which a file is kept, as Linux does in /tmp (tmpfiles.d(5))."""
_NAME = re.compile(r"rlnb-\d+-tmp(-\w{8})?")
_made: dict[int, Path] = {}
"""Folder with a random name, by the id of the process that has made it."""


def variables() -> dict[str, str]:
    """Return the variable that gives a process a folder of this user's own; empty if there is no other than the usual.

    All processes of this user on this machine share the folder, since the ranks of a run meet at Isaac Lab's lock. A
    folder of the user's own, such as that of a job of Slurm, stays as it is.
    """
    if sys.platform == "win32":  # has a folder for each user
        return {}
    try:
        usual = Path(tempfile.gettempdir())
        status = os.stat(usual)
        if status.st_uid == os.geteuid() and not writers(status, usual):
            return {}
        return {VARIABLE: str(_below(shared_folder()))}
    except OSError:  # the processes say themselves what they cannot write
        return {}


def use() -> None:
    """Use the folder of :func:`variables` in this process, which may be in a container without its agent's folder."""
    os.environ.update(variables())
    tempfile.tempdir = None


def shared_folder() -> Path:
    """Return the folder for temporary files in which all processes of this user meet, also those that have their own.

    Raises:
        OSError: No folder for temporary files can be written.
    """
    folder = Path(tempfile.gettempdir())
    return folder.parent if _NAME.fullmatch(folder.name) else folder


def tidy() -> None:
    """Remove what has not been used for long in the folders that :func:`variables` has made, and those left over."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        shared, name = shared_folder(), f"rlnb-{os.getuid()}-tmp"
        _clear(shared.resolve(), re.compile(rf"{name}-\w{{8}}"), lambda entry: shared / entry)
        _clear(shared.resolve() / name, re.compile(".+"), lambda _: shared / name)


def _below(usual: Path) -> Path:
    """Return this user's folder in one that others can write, or one with a random name if another has taken it.

    Raises:
        OSError: No folder can be made there.
    """
    folder = usual / f"rlnb-{os.getuid()}-tmp"
    with contextlib.suppress(OSError):  # another user's file, link or folder
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if _is_private(folder):
            return folder
    folder, pid = _made.get(os.getpid(), Path()), os.getpid()
    if pid not in _made or not folder.is_dir():
        folder = _made[pid] = Path(tempfile.mkdtemp(prefix=f"rlnb-{os.getuid()}-tmp-", dir=usual))
        atexit.register(_remove_own, folder, pid)
    return folder


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's and only this user has ever been able to write it; close it to others.

    Raises:
        OSError: It is a link, no folder, or cannot be entered.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if not is_own(found.st_uid, folder.parent) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        if found.st_mode & 0o077:
            os.fchmod(descriptor, 0o700)
        return not os.fstat(descriptor).st_mode & 0o077
    finally:
        os.close(descriptor)


def _clear(folder: Path, names: re.Pattern[str], place: Callable[[str], Path]) -> None:
    """Remove what this user has in a folder and has not used for long.

    Args:
        folder: The folder, which is no link.
        names: Names of the entries that may be removed.
        place: Returns the folder for temporary files of the processes that may use an entry.

    Raises:
        OSError: The folder does not exist, or cannot be entered.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        old_s = time.time() - KEPT_S
        entries = [name for name in os.listdir(descriptor) if names.fullmatch(name)]
        old = [name for name in entries if _is_mine(name, descriptor) and _used_s(name, descriptor) < old_s]
        begun_s = _begun_s() if old else {}
        for name in old:
            # A living process may go on with what it had opened at its start.
            if _used_s(name, descriptor) < begun_s.get(str(place(name)), math.inf) - KEPT_S:
                _remove(name, descriptor)
    finally:
        os.close(descriptor)


def _is_mine(name: str, folder: int) -> bool:
    with contextlib.suppress(OSError):  # it has just been removed
        return os.lstat(name, dir_fd=folder).st_uid == os.getuid()
    return False


def _used_s(name: str, folder: int) -> float:
    """Return the time of the last use of a file, or of any in a folder, in seconds since the epoch."""
    used_s = [0.0]
    with contextlib.suppress(OSError):
        used_s.append(os.lstat(name, dir_fd=folder).st_mtime)
    for _, _, names, descriptor in os.fwalk(name, dir_fd=folder):
        used_s.append(os.fstat(descriptor).st_mtime)
        for below in names:
            with contextlib.suppress(OSError):
                status = os.lstat(below, dir_fd=descriptor)
                used_s += [status.st_mtime, status.st_atime]
    return max(used_s)


def _begun_s() -> dict[str, float]:
    """Return when the oldest living process was started that has a folder as its ``TMPDIR``, by folder."""
    import psutil

    begun_s: dict[str, float] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if folder := process.environ().get(VARIABLE):
                begun_s[folder] = min(begun_s.get(folder, math.inf), process.create_time())
    return begun_s


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _remove_own(folder: Path, pid: int) -> None:
    """Remove a folder, unless this is a fork of the process that has made it."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
