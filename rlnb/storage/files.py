"""Write records once and atomically, and read them; also the hash of a source file. Standard library only."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import hashlib
import json
import logging
import os
import secrets
import stat
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from rlnb.errors import RlnbError
from rlnb.settings import options
from rlnb.spec import Json
from rlnb.storage.access import Folder, ForeignLinkError, is_of_team, is_own, leads_elsewhere, writers

logger = logging.getLogger(__name__)

RECORD_BYTES = 1 << 20
"""Largest record of a run that a list of runs reads, in bytes."""
LARGEST_BYTES = 1 << 27
"""Largest JSON file that is read, in bytes; an evaluation holds every episode."""
MOST_DETAIL = 1 << 18
"""Most characters of a traceback or a log in a record, so that the record stays readable."""


class IrregularError(RlnbError):
    """A file is a pipe, a device or the like."""


def restrict_umask(folder: Path | None = None) -> None:
    """Take write access from other users to what this process makes, if its umask gives it to them.

    Args:
        folder: A folder in which the process works. If it is a team's, the members of its group keep the access. None
            if that is not known yet: they keep it for now, unless all users have it.
    """
    umask = os.umask(0o022)
    of_all = 0 if umask & stat.S_IWOTH else 0o022
    os.umask(umask | (of_all if folder is None else _taken(folder)))


def file_mode(folder: Path) -> int:
    """Return the mode of a new file in a folder, on which Linux then applies the umask.

    The umask itself is that of the whole notebook and stays as it is.
    """
    return 0o666 & ~_taken(folder)


def folder_mode(folder: Path) -> int:
    """Return the mode of a new folder in a folder; see :func:`file_mode`."""
    return 0o777 & ~_taken(folder)


def _taken(folder: Path) -> int:
    """Return the access that new entries of a folder give to no one. Only in a team's folder, its group may write."""
    return 0o002 if is_of_team(folder) else 0o022


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless they exist.

    Raises:
        RlnbError: A part of the path is a link that another user has made.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            with contextlib.suppress(FileExistsError), Folder(folder.parent) as above:
                above.mkdir(folder.name, folder_mode(folder.parent))
    Folder(path).close()


def make_subfolder(path: Path) -> None:
    """Make a folder in an existing one, unless it exists.

    Raises:
        RlnbError: A part of the path is a link that another user has made.
        OSError: The folder above does not exist, or cannot be written.
    """
    with Folder(path.parent) as above:
        try:
            above.mkdir(path.name, folder_mode(path.parent))
        except FileExistsError:
            Folder(path).close()


def make_file(path: Path) -> None:
    """Make an empty file unless it exists, so that it has the right mode when another library writes it.

    Raises:
        RlnbError: A part of the path is a link that another user has made.
    """
    with Folder(path.parent) as folder:
        os.close(folder.open(path.name, os.O_WRONLY | os.O_CREAT, file_mode(folder.path)))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole; an existing one is replaced. A reader sees the old or the new content, never a part."""
    with Folder(path.parent) as folder:
        temporary = temporary_name(path.name)
        try:
            _write(folder, temporary, content)
            folder.rename(temporary, path.name)
        finally:
            folder.unlink(temporary)


def now() -> str:
    """Return the current time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def there(path: Path) -> bool:
    """Return whether a file exists.

    False after an error such as NFS's ESTALE, so that the caller retries later, and for what cannot be a path.
    """
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def plain(value: object) -> object:
    """Return a value as a JSON type, one level deep: a dataclass or mapping as a dict, a path as a string.

    Raises:
        RlnbError: The value cannot be written as JSON.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if (number := builtin(value)) is not value:
        return number
    raise RlnbError(
        f"{value!r} ({type(value).__name__}) cannot be written as JSON. Use numbers, strings, lists, dicts."
    )


def write_once(path: Path, data: object, reserve: Path | None = None, *, limit_bytes: int = LARGEST_BYTES) -> bool:
    """Write ``data`` as JSON if ``path`` does not exist yet; return whether this call wrote it.

    The text is written to a temporary file, synced, and then linked to its name. Creating the link
    is exclusive on every POSIX file system, including shared ones, so no lock is needed and no
    reader ever sees half a file. Only where the file system has no hard links, as on some FUSE mounts, is the text
    written to the name itself, and a reader may see it while it is written.

    Args:
        path: The record.
        data: Content: JSON types, or dataclasses of them.
        reserve: A file in the same folder that is overwritten with the text if it exists. This works on a full disk,
            where space that was freed first could be taken by another process.
        limit_bytes: Largest size of the text, which is that of a record that its readers accept.

    Raises:
        RlnbError: The text would be larger than the limit.
        OSError: The disk is full, the folder is not writable, or the like.
    """
    content = _content(path, data, limit_bytes)
    with Folder(path.parent) as folder:
        temporary = temporary_name(path.name)
        try:
            if reserve is not None:
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(reserve.name, temporary)
            _write(folder, temporary, content, synced=True, anew=reserve is None)
            try:
                folder.link(temporary, path.name)
            except FileExistsError:
                return False
            except OSError as exc:  # file systems without hard links (some FUSE mounts)
                if exc.errno not in (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
                return _create(folder, path.name, content)
        finally:
            folder.unlink(temporary)
    return True


def replace_json(path: Path, data: object) -> None:
    """Write ``data`` as JSON in place of what ``path`` holds. A reader sees the old or the new text, never a part.

    Raises:
        RlnbError: The text would be larger than a record may be.
        OSError: The disk is full, the folder is not writable, or the like. The old text stays.
    """
    with Folder(path.parent) as folder:
        temporary = temporary_name(path.name)
        try:
            _write(folder, temporary, _content(path, data, LARGEST_BYTES), synced=True)
            folder.rename(temporary, path.name)
        finally:
            folder.unlink(temporary)


def temporary_name(name: str) -> str:
    """Return an unpredictable name for a file beside another one, so that no other user can take it first."""
    return f".{name}.{os.getpid()}.{secrets.token_hex(4)}"


UTF8 = (
    "If this is the name of a folder in which the characters are wrong, the process reads names as ASCII: set "
    "PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8, before Python starts."
)
"""The fix for text with lone surrogates, by which Python represents the bytes that it cannot read as text."""


def _content(path: Path, data: object, limit_bytes: int) -> bytes:
    """Return a record's text.

    Raises:
        RlnbError: The text would be larger than the limit, or is not Unicode.
    """
    try:
        content = (json.dumps(data, indent=1, ensure_ascii=False, default=plain) + "\n").encode()
    except UnicodeEncodeError as exc:
        what = f"{path.name} would hold {exc.object[max(0, exc.start - 60) : exc.end]!r}, which is not Unicode."
        raise RlnbError(f"{what} {UTF8}") from exc
    if len(content) > limit_bytes:
        raise RlnbError(f"{path.name} would be larger than {limit_bytes >> 20} MiB. Use shorter values.")
    return content


def _write(folder: Folder, name: str, content: bytes, *, synced: bool = False, anew: bool = True) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if anew else 0)
    with open(folder.open(name, flags, file_mode(folder.path)), "wb") as file:
        file.write(content)
        file.truncate()
        file.flush()
        if synced:
            os.fsync(file.fileno())


def _create(folder: Folder, name: str, content: bytes) -> bool:
    try:
        _write(folder, name, content, synced=True)
    except FileExistsError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def warn_once(text: str) -> None:
    """Log a warning only the first time, since lists of runs read the same records again and again."""
    logger.warning("%s", text)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Other files are refused: a pipe would block, and a device never ends.

    Raises:
        RlnbError: The path is not a regular file, or leads through a link that another user has made.
        OSError: The file does not exist, or cannot be read.
    """
    return open(_opened(path)[0], "rb")


def _opened(path: Path) -> tuple[int, os.stat_result]:
    """Return the descriptor of a regular file that is open for reading, and its status; see :func:`open_regular`."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # which Windows lacks
    descriptor = os.open(path, flags)
    if leads_elsewhere(descriptor, path):
        os.close(descriptor)
        with Folder(path.parent) as folder:
            descriptor = folder.open(path.name, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise IrregularError(f"{path} is not a regular file. Move it away.")
        if status.st_nlink > 1:
            _refuse_linked(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _refuse_linked(descriptor: int, path: Path) -> None:
    """Refuse a file to which another user can have linked, in a folder which that user can write.

    Linux allows it where ``fs.protected_hardlinks`` is 0. What was read of it could be published in that folder.

    Raises:
        ForeignLinkError: The file is such a link.
    """
    folder, file = os.stat(path.parent), os.fstat(descriptor)
    if options.team or sys.platform == "win32":
        return
    if folder.st_uid == file.st_uid and not writers(folder, path.parent):
        return
    for _ in range(20):  # a record has two names for a moment while it is written
        time.sleep(0.005)
        if os.fstat(descriptor).st_nlink < 2:
            return
    raise ForeignLinkError(
        f"{path} has a further name elsewhere (it is a hard link), and other users can have made it. It is not read. "
        "Use a copy of it."
    )


def read_json(path: Path, limit_bytes: int = LARGEST_BYTES) -> dict[str, Json] | None:
    """Return the JSON object in ``path``; None if the file does not exist.

    Raises:
        RlnbError: The file cannot be read, is larger than the limit, or is not a complete JSON object, which rlnb
            never writes.
    """
    try:
        descriptor, status = _opened(path)
        try:
            return _decoded(path, descriptor, status.st_size, limit_bytes)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RlnbError:
        raise
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _unreadable(path: Path, error: OSError) -> RlnbError:
    return RlnbError(f"{path} cannot be read: {error.strerror or error}. Make it readable, or move it away.")


def _decoded(path: Path, descriptor: int, size_bytes: int, limit_bytes: int) -> dict[str, Json]:
    """Return the JSON object in an open file, of which never more than the limit is read.

    Lists of runs read tens of thousands of small files. A file object would add about a quarter to their time.

    Raises:
        RlnbError: The file is larger than the limit, or is not a complete JSON object.
    """
    parts, left = [], limit_bytes + 1
    while left and (part := os.read(descriptor, min(left, size_bytes + 1))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise RlnbError(f"{path} is larger than {limit_bytes >> 20} MiB. Move it away.")
    content = b"".join(parts)
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        raise RlnbError(f"{path} is damaged ({exc}). Another program wrote or truncated it. Move it away.") from exc
    if not isinstance(data, dict):
        raise RlnbError(f"{path} is damaged: it is not a JSON object. Move it away.")
    return data


def read_own_json(path: Path) -> dict[str, Json]:
    """Return the JSON object in a file whose content is executed; empty if the file does not exist.

    Raises:
        RlnbError: As for :func:`read_json`, or another user than root has written the file, who is not of a team. Root
            reads all users' files, as the pods of a cluster do.
    """
    try:
        descriptor, status = _opened(path)
        try:
            owner = status.st_uid
            if not options.team and sys.platform != "win32" and 0 not in (os.getuid(), owner):
                if not is_own(owner, path.parent):
                    raise RlnbError(
                        f"{path} belongs to the user {owner}, so the user {os.getuid()} does not execute it. Start the "
                        "run as that user, or set RLNB_TEAM=1 on its nodes if everybody who can write there is trusted."
                    )
            return _decoded(path, descriptor, status.st_size, LARGEST_BYTES)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return {}
    except RlnbError:
        raise
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def within(folder: Path, name: str) -> Path | None:
    """Return the file that a record names below a folder; None if the name leads out of it, or cannot be a path.

    Args:
        folder: The folder, without links in its path.
        name: Path below the folder. A record of another user may hold any text.
    """
    try:
        path = (folder / name).resolve()
        path.exists()
    except (OSError, ValueError):  # a name that is too long, or with a null character
        return None
    return path if path.is_relative_to(folder) else None


def stamp(path: str | Path) -> str:
    """Return a text that changes whenever a file is written; empty if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns}-{status.st_size}"


def tail(path: Path, lines: int = 40, limit_bytes: int = 65536, *, told: bool = False) -> str:
    """Return the last ``lines`` lines of a log; an empty string if it is missing, unreadable or not a regular file.

    Args:
        path: The log.
        lines: Number of lines.
        limit_bytes: Most bytes that are read.
        told: Whether a first line says so if the limit leaves out some of these lines.
    """
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            length, content = 65536, b""
            while True:
                length = min(length, limit_bytes, size)
                file.seek(size - length)
                content = file.read(length)
                if length in (size, limit_bytes) or content.count(b"\n") > lines:
                    break
                length *= 8
    except (OSError, RlnbError):
        return ""
    last = content.decode("utf-8", "replace").splitlines()[-lines:]
    if told and length < size and content.count(b"\n") <= lines:
        last[:1] = [f"... (only the last {limit_bytes >> 20} MiB of {path} are shown)"]
    return "\n".join(last)


# -- values of NumPy -------------------------------------------------------------------------------------------------


def builtin(value: Any) -> Any:
    """Return a NumPy scalar as Python's own number, and an array as a list; any other value unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def whole(value: Any) -> Any:
    """Return a number as a Python int if it is whole, also one from NumPy, such as ``np.float64(9.0)``.

    Any other value is returned unchanged, for the check of the argument to refuse.
    """
    number = builtin(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


# -- the hash of a source file ---------------------------------------------------------------------------------------


CELL_HEADER = b"# rlnb task "
"""Begin of the first line of a cell's module. The line names the task and the notebook, and belongs to no hash."""


def source_body(content: bytes) -> bytes:
    """Return a file's content without the header line that names the notebook of a cell."""
    return content.partition(b"\n")[2] if content.startswith(CELL_HEADER) else content


def source_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content without its header line, in hexadecimal."""
    return hashlib.sha256(source_body(content)).hexdigest()


def has_hash(content: bytes, digest: str | None) -> bool:
    """Return whether a hash is that of a file's content. Older versions of rlnb hashed the header line too."""
    return digest in (None, source_hash(content), hashlib.sha256(content).hexdigest())
