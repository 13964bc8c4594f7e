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
import shutil
import stat
import sys
from collections import deque
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.storage.owner import is_own

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
