"""The one way into folders in which other users may have made entries. Standard library only.

A path names whatever lies there at the moment of each call. In a folder that other users can write, that may be a link
to a file of this user, which a write would change. A :class:`Folder` is therefore opened part by part, and no link of
another user is followed on the way. Everything else happens relative to its descriptor, which stays the same folder
whatever is renamed meanwhile. Links of this user and of root are followed, so a folder of runs may be one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import shutil
import stat
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import Problem, RlnbError
from rlnb.settings import options

MOST_LINKS = 40
"""Number of links in a path after which Linux gives up too."""
_HAS_DESCRIPTORS = sys.platform != "win32"  # which has no users that share a folder either
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class ForeignLinkError(RlnbError, OSError):
    """A path leads through a link that another user has made, or to a file to which another user can have linked."""


class Folder:
    """An open folder, whose entries are named without a path.

    Args:
        path: The folder.

    Raises:
        ForeignLinkError: A part of the path is a link of another user.
        OSError: The folder does not exist or cannot be entered.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = _descend(path) if _HAS_DESCRIPTORS else None

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder, which then has no use."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def open(self, name: str, flags: int, mode: int = 0o666, *, links: int = MOST_LINKS) -> int:
        """Open an entry and return its descriptor. A link as the entry itself is followed, unless it is another user's.

        Args:
            name: Name of the entry.
            flags: Flags of :func:`os.open`.
            mode: Mode of a new file, on which the umask is applied.
            links: Number of links that are followed.

        Raises:
            ForeignLinkError: The entry is a link of another user, or would be written and is a file with several names.
            OSError: The entry cannot be opened.
        """
        try:
            descriptor = os.open(self._place(name), flags & ~os.O_TRUNC | _NO_LINK, mode, dir_fd=self._descriptor)
            return self._to_write(descriptor, name, flags) if flags & (os.O_WRONLY | os.O_RDWR) else descriptor
        except ForeignLinkError:
            raise
        except OSError as exc:
            if exc.errno != errno.ELOOP or not links:
                exc.filename = os.fspath(self.path / name)
                raise
        target = self.path / _target(name, self._descriptor, self.path)
        with Folder(target.parent) as folder:
            return folder.open(target.name, flags, mode, links=links - 1)

    def _to_write(self, descriptor: int, name: str, flags: int) -> int:
        """Return a descriptor that may be written: that of a file which no other user can have linked to its name.

        Linux lets everybody link to every file where ``fs.protected_hardlinks`` is 0, as in some containers.
        """
        try:
            status = os.fstat(descriptor)
            if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and _HAS_DESCRIPTORS:
                raise ForeignLinkError(
                    f"{self.path / name} has further names (it is a hard link), so it is not written. Move it away."
                )
            if flags & os.O_TRUNC:
                os.ftruncate(descriptor, 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def link(self, name: str, other: str, into: Folder | None = None) -> None:
        """Give an entry another name too. Fails if the name is taken.

        Args:
            name: Name of the entry.
            other: Its further name.
            into: Folder of the further name; None is this one.
        """
        to = into or self
        os.link(
            self._place(name),
            to._place(other),
            src_dir_fd=self._descriptor,
            dst_dir_fd=to._descriptor,
            follow_symlinks=not _HAS_DESCRIPTORS,
        )

    def rename(self, name: str, other: str, into: Folder | None = None) -> None:
        """Rename an entry. A file takes the place of another one, a folder that of an empty one.

        Args:
            name: Name of the entry.
            other: Its new name.
            into: Folder that it is moved into; None is this one.
        """
        rename = os.rename if _HAS_DESCRIPTORS else os.replace
        to = into or self
        rename(self._place(name), to._place(other), src_dir_fd=self._descriptor, dst_dir_fd=to._descriptor)

    def mkdir(self, name: str, mode: int) -> None:
        """Make a folder, which must not exist."""
        os.mkdir(self._place(name), mode, dir_fd=self._descriptor)

    def touch(self, name: str) -> None:
        """Set the time of an entry's last change to now. A link is not followed."""
        os.utime(self._place(name), dir_fd=self._descriptor, follow_symlinks=not _HAS_DESCRIPTORS)

    def unlink(self, name: str) -> None:
        """Remove a file, if it exists. Of a link, the link is removed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._place(name), dir_fd=self._descriptor)

    def rmtree(self, name: str, *, ignore_errors: bool = False) -> None:
        """Remove a folder with all that is in it. No link is followed."""
        if _HAS_DESCRIPTORS:
            shutil.rmtree(name, ignore_errors, dir_fd=self._descriptor)
        else:
            shutil.rmtree(self.path / name, ignore_errors)

    def _place(self, name: str) -> str:
        return name if _HAS_DESCRIPTORS else os.fspath(self.path / name)


def leads_elsewhere(descriptor: int, path: Path) -> bool:
    """Return whether an open file may have another path than the one by which it was opened, because of a link."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") != os.fspath(path)
    except OSError:  # no Linux
        return True


def _descend(path: Path) -> int:
    """Return a descriptor of a folder, which is reached without a link of another user."""
    path = path if path.is_absolute() else Path.cwd() / path
    waiting, links = deque(path.parts[1:]), 0
    here, reached = os.open(path.anchor, _SEARCH), Path(path.anchor)
    try:
        while waiting:
            name = waiting.popleft()
            try:
                below = os.open(name, _SEARCH | _NO_LINK, dir_fd=here)
            except OSError as exc:
                exc.filename = os.fspath(path)
                if exc.errno not in (errno.ELOOP, errno.ENOTDIR) or (links := links + 1) > MOST_LINKS:
                    raise
                target = _target(name, here, reached, exc)
                waiting.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
                if not target.is_absolute():
                    continue
                below, reached = os.open(target.anchor, _SEARCH), Path(target.anchor)
            else:
                reached = reached / name
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _target(name: str, folder: int | None, path: Path, error: OSError | None = None) -> Path:
    """Return where an entry leads that is a link of this user or of root.

    Args:
        name: Name of the entry.
        folder: Descriptor of its folder.
        path: Path of its folder.
        error: What is raised if the entry is no link, because it could not be opened.

    Raises:
        ForeignLinkError: The link is another user's.
        OSError: The entry is no link.
    """
    if not hasattr(os, "O_PATH"):  # no Linux
        _refuse_foreign(os.stat(name, dir_fd=folder, follow_symlinks=False), folder, path / name)
        return Path(os.readlink(name, dir_fd=folder))
    link = os.open(name, os.O_PATH | _NO_LINK, dir_fd=folder)  # it stays this link, whatever takes its place
    try:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            raise error or OSError(errno.EINVAL, os.strerror(errno.EINVAL), os.fspath(path / name))
        _refuse_foreign(status, folder, path / name)
        return Path(os.readlink("", dir_fd=link))
    finally:
        os.close(link)


def _refuse_foreign(status: os.stat_result, folder: int | None, path: Path) -> None:
    if status.st_uid == 0 or is_own(status.st_uid, path.parent):
        return
    if os.getuid() == 0 and folder is not None and os.fstat(folder).st_uid == status.st_uid:
        return  # in a folder that was mounted into a container, and that root trusts
    raise ForeignLinkError(
        f"{path} is a link of the user {status.st_uid}, which is not followed. Use the path of the folder to which it "
        "leads, or a folder of your own."
    )


# -- owners ----------------------------------------------------------------------------------------------------------


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


# -- folders that several users share --------------------------------------------------------------------------------


EXECUTED = ("runs", "tasks")
"""Folders of a root from which trainings, evaluations and previews execute what this user has put there."""
_OWN = "rlnb.options.root, or RLNB_ROOT"
_TEAM = "To trust everybody who can write there instead: rlnb.options.team = True, or RLNB_TEAM=1."


def sharing_problems(root: Path, names: tuple[str, ...] = EXECUTED) -> Iterator[Problem]:
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
    if problems := [f"{problem.what} {problem.fix}" for problem in sharing_problems(root, names)]:
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
