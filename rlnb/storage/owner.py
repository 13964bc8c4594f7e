"""Whose file it is. Who executes what a file says trusts its owner. Standard library only."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
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
    return None if is_own(owner, folder) else owner


def others(path: Path) -> str:
    """Return who else decides what a file or a folder holds, as the end of a sentence; "" if no one does.

    Raises:
        OSError: It does not exist.
    """
    if (owner := another_owner(path, path.parent)) is not None:
        return f"belongs to the user {owner}"
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):  # which no one can write
        return ""
    return f"can be written by {who}" if (who := writers(status, path.parent)) else ""


def is_own(owner: int, folder: Path) -> bool:
    """Return whether a user id is this user's, or the one to which a folder's share gives the files of this user."""
    if sys.platform == "win32":  # has no such users
        return True
    if owner == os.getuid():
        return True
    private = _private_file(folder)
    return private is not None and owner == private.st_uid


def writers(status: os.stat_result, folder: Path) -> str:
    """Return who may write a file or a folder, except its owner: "all users", "the group devs", or no one: "".

    The group of root does not count, nor does one that has no other member than this user: Linux makes one for each
    user. Where a file system shows the same modes for all files, as many mounts of object storage do, they say nothing.

    Args:
        status: Status of the file or folder.
        folder: A folder on the same file system.
    """
    if sys.platform == "win32" or not status.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        return ""
    if not status.st_mode & stat.S_IWOTH and (status.st_gid == 0 or _is_of_this_user(status.st_gid)):
        return ""
    private = _private_file(folder)
    if private is not None and private.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        return ""
    return "all users" if status.st_mode & stat.S_IWOTH else f"the group {_group_name(status.st_gid)}"


def replacers(folder: Path) -> str:
    """Return who may rename or replace what this user makes in a folder; "" if only root may.

    The owner of a folder may, and who may write it, unless it is sticky (``chmod +t``), as folders for temporary files
    are. Root trusts the owner: in a container, a folder from outside often belongs to another user id.

    Raises:
        OSError: The folder does not exist.
    """
    return _foreign_owner(folder) or renamers(folder)


def adders(folder: Path) -> str:
    """Return who else may make files in a folder, also where it is sticky; "" if only root may.

    Raises:
        OSError: The folder does not exist.
    """
    return _foreign_owner(folder) or writers(os.stat(folder), folder)


def _foreign_owner(folder: Path) -> str:
    """Return the owner of a folder if this user cannot trust it; "" otherwise."""
    owner = os.stat(folder).st_uid
    if sys.platform == "win32" or os.getuid() == 0 or owner == 0 or is_own(owner, folder):
        return ""
    return f"its owner, the user {owner}"


def renamers(folder: Path) -> str:
    """Return who, besides its owner and root, may rename or replace what other users have in a folder; "" is no one.

    Raises:
        OSError: The folder does not exist.
    """
    status = os.stat(folder)
    return "" if status.st_mode & stat.S_ISVTX else writers(status, folder)


def is_of_team(folder: Path) -> bool:
    """Return whether the members of a group may write, and replace, all that is in a folder."""
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWGRP) and not mode & (stat.S_ISVTX | stat.S_IWOTH)


def _is_of_this_user(group: int) -> bool:
    """Return whether this user is the only member of a group."""
    import grp
    import pwd

    try:
        user, entry = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:  # ids without names, as in containers
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def _group_name(group: int) -> str:
    import grp

    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def _private_file(folder: Path) -> os.stat_result | None:
    """Return the status of a new file that this user makes for itself in a folder; None if it cannot make one."""
    try:
        return made_anew(folder)
    except OSError:
        return None


def made_anew(folder: Path) -> os.stat_result:
    """Return the status of a file that this user makes for itself in a folder. It is removed at once.

    Raises:
        OSError: No file can be made there.
    """
    from rlnb.storage.folder import Folder

    name = f".{os.getpid()}.{secrets.token_hex(8)}"
    with Folder(folder) as opened:
        with contextlib.suppress(OSError, AttributeError):  # Linux has files without a name, NFS has not
            descriptor = opened.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600)
            try:
                return os.fstat(descriptor)
            finally:
                os.close(descriptor)
        descriptor = opened.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
            opened.unlink(name)


def printable(text: str, most: int = 500) -> str:
    """Return a text of another user for a message: in one line, without control characters, and not too long."""
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[:most])
    return line if len(text) <= most else f"{line}..."
