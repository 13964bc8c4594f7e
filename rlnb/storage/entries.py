"""List, read, add to, copy, rename and remove what lies in folders in which other users may have made entries.

Each function takes a path, and gets to it as :mod:`rlnb.storage.access` does: through no link of another user. Standard
library only.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from rlnb.storage import files
from rlnb.storage.access import Folder, ForeignLinkError, leads_elsewhere
from rlnb.storage.files import warn_once

_LIST = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def scanned(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Open a folder and yield its entries, whose attribute ``path`` is their name.

    Raises:
        ForeignLinkError: A part of the path is a link of another user.
        OSError: The folder cannot be read.
    """
    if not _LIST & getattr(os, "O_DIRECTORY", 0):  # Windows
        with os.scandir(folder) as entries:
            yield entries
        return
    descriptor = os.open(folder, _LIST)
    try:
        if leads_elsewhere(descriptor, folder):
            os.close(descriptor)
            descriptor = -1
            with Folder(folder) as opened:
                descriptor = opened.open(".", _LIST)
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def children(folder: Path) -> list[Path]:
    """Return the paths of the entries of a folder, in no order; none if it does not exist.

    Raises:
        ForeignLinkError: A part of the path is a link of another user.
        OSError: The folder cannot be read.
    """
    try:
        with scanned(folder) as entries:
            return [folder / entry.name for entry in entries]
    except FileNotFoundError:
        return []


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths of the entries of a folder whose names match a pattern, in no order.

    There are none in a folder that cannot be read, or that another user's link leads to, which a warning says.
    """
    try:
        return [path for path in children(folder) if fnmatch.fnmatchcase(path.name, pattern)]
    except ForeignLinkError as exc:
        files.warn_once(str(exc))
    except OSError:
        pass
    return []


class UnreadableError(files.IrregularError, OSError):
    """A file that would be read is a pipe, a device or the like."""


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        ForeignLinkError: A part of the path is a link of another user.
        OSError: There is no such file, it cannot be read, or it is no regular one.
    """
    with _opened(path) as file:
        return file.read()


def _opened(path: Path) -> BinaryIO:
    try:
        return files.open_regular(path)
    except files.IrregularError as exc:
        raise UnreadableError(str(exc)) from None


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8; the errors are those of :func:`read_bytes`."""
    return read_bytes(path).decode("utf-8")


def open_to_add(path: Path, *, anew: bool = False, mode: int | None = None) -> BinaryIO:
    """Open a file of this user to add to its end; it is made if it does not exist. No link is followed.

    Args:
        path: The file.
        anew: Whether the file must not exist.
        mode: Mode of a new file; None is that of the folder's files.

    Raises:
        ForeignLinkError: A part of the path is a link of another user.
        OSError: The file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_EXCL if anew else 0)
    with Folder(path.parent) as folder:
        descriptor = folder.open(path.name, flags, files.file_mode(path.parent) if mode is None else mode, links=0)
    return open(descriptor, "ab", buffering=0)


def open_to_change(path: Path) -> BinaryIO:
    """Open a file of this user to write anywhere in it; it is made if it does not exist. No link is followed."""
    with Folder(path.parent) as folder:
        descriptor = folder.open(path.name, os.O_RDWR | os.O_CREAT, files.file_mode(path.parent), links=0)
    return open(descriptor, "r+b")


def touch(path: Path, *, make: bool = True) -> None:
    """Set the time of a file's last change to now.

    Args:
        path: The file.
        make: Whether it is made if it does not exist.
    """
    with Folder(path.parent) as folder:
        flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | (os.O_CREAT if make else 0)
        descriptor = folder.open(path.name, flags, files.file_mode(path.parent), links=0)
        try:
            os.utime(descriptor if os.utime in os.supports_fd else path)
        finally:
            os.close(descriptor)


def touch_folder(path: Path) -> None:
    """Set the time of a folder's last change to now."""
    with Folder(path.parent) as folder:
        folder.touch(path.name)


def copy(path: Path, target: Path) -> None:
    """Copy a regular file with its times, in place of what the target is.

    The copy can be read by those who may read the file, and written by those who may write in its folder.
    """
    with _opened(path) as source, Folder(target.parent) as folder:
        status, name = os.fstat(source.fileno()), files.temporary_name(target.name)
        try:
            with open(folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                shutil.copyfileobj(source, file)
                file.flush()
                if os.chmod in os.supports_fd:
                    os.chmod(file.fileno(), status.st_mode & files.folder_mode(target.parent))
                if os.utime in os.supports_fd:
                    os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            folder.rename(name, target.name)
        finally:
            folder.unlink(name)


def link(path: Path, target: Path) -> None:
    """Give a file of this user a further name in another folder of this user, which must not exist."""
    with Folder(path.parent) as folder, Folder(target.parent) as other:
        folder.link(path.name, target.name, into=other)


def make(path: Path, mode: int | None = None) -> None:
    """Make a folder, which must not exist, in an existing one.

    Args:
        path: The folder.
        mode: Its mode; None is that of the other folders there.
    """
    with Folder(path.parent) as folder:
        folder.mkdir(path.name, files.folder_mode(path.parent) if mode is None else mode)


def rename(path: Path, name: str) -> Path:
    """Give an entry another name in its folder and return its path. A file takes the place of another one."""
    with Folder(path.parent) as folder:
        folder.rename(path.name, name)
    return path.with_name(name)


def move(path: Path, target: Path) -> None:
    """Move an entry to a folder of the same file system. A file takes the place of another one."""
    with Folder(path.parent) as folder, Folder(target.parent) as other:
        folder.rename(path.name, target.name, into=other)


def remove(path: Path) -> None:
    """Remove a file if it exists; of a link, the link."""
    with contextlib.suppress(FileNotFoundError), Folder(path.parent) as folder:
        folder.unlink(path.name)


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it, through no link. A folder that does not exist is an error.

    Args:
        path: The folder.
        ignore_errors: Whether what cannot be removed stays without a word.
    """
    with contextlib.suppress(OSError) if ignore_errors else contextlib.nullcontext(), Folder(path.parent) as folder:
        folder.rmtree(path.name, ignore_errors=ignore_errors)


# -- walking folders -------------------------------------------------------------------------------------------------


MOST_FOLDERS = 500
"""Largest number of folders that are read. The logs of a training have a few, and a home has a hundred thousand."""
MOST_FILES = 100_000
"""Number of files and links after which no further folder is read."""


MOST_ALIKE = 50
"""Folders of a folder with names that differ only in numbers, of which event files and configs are searched: those of
checkpoints."""
_NUMBERS = re.compile(r"\d+")


def files_below(
    folder: Path, named: Callable[[str], bool] = lambda name: True, *, alike: int | None = None
) -> Iterator[Path]:
    """Yield the files and links below a folder, the nearest to it first.

    Links to folders are not followed, except ``folder`` itself. Folders that cannot be read are skipped. A warning
    names a folder that has too many to be read in a moment.

    Args:
        folder: The folder.
        named: Returns True for the names to include.
        alike: Most folders in a folder whose names differ only in numbers, such as those of checkpoints, that are read;
            None sets no limit. Without it, thousands of checkpoints could hide the folder with the event files.
    """
    waiting, folders, count = deque([folder]), 1, 0
    while waiting and count <= MOST_FILES:
        here, families = waiting.popleft(), Counter[str]()
        try:
            with scanned(here) as entries:
                for entry in entries:
                    if alike is not None and entry.is_dir(follow_symlinks=False):
                        family = _NUMBERS.sub("#", entry.name)
                        families[family] += 1
                        if families[family] > alike:
                            continue
                    if not entry.is_dir(follow_symlinks=False):
                        count += 1
                        if named(entry.name):
                            yield here / entry.name
                    elif (folders := folders + 1) <= MOST_FOLDERS:
                        waiting.append(here / entry.name)
        except OSError:
            continue
    if waiting or folders > MOST_FOLDERS:
        warn_once(f"{folder} has more than {MOST_FOLDERS:,} folders or {MOST_FILES:,} files. The rest is not read.")


def walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder at and below a folder with the names of its folders and of its files, like :func:`os.walk`.

    No link below it is followed, and no link of another user on the way to it. A caller may remove names of folders.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with scanned(here) as entries:
                kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            continue
        below = [name for name, is_folder in kinds if is_folder]
        yield here, below, [name for name, is_folder in kinds if not is_folder]
        waiting += [here / name for name in reversed(below)]


def is_small(folder: Path) -> bool:
    """Return whether :func:`files_below` yields all files below a folder."""
    folders = count = 0
    for _, _, names in walk(folder):
        folders, count = folders + 1, count + len(names)
        if folders > MOST_FOLDERS or count > MOST_FILES:
            return False
    return True
