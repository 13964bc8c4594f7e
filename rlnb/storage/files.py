"""Write records once and atomically, and read them. Standard library only."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import json
import logging
import os
import secrets
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.storage.scalars import builtin

logger = logging.getLogger(__name__)

RECORD_BYTES = 1 << 20
"""Largest record of a run that a list of runs reads, in bytes."""
LARGEST_BYTES = 1 << 27
"""Largest JSON file that is read, in bytes; an evaluation holds every episode."""
MOST_DETAIL = 1 << 18
"""Most characters of a traceback or a log in a record, so that the record stays readable."""


def restrict_umask() -> None:
    """Take write access from other users to what this process makes, if its umask gives it to all.

    A umask that gives write access to the group only is left as it is: a team may share a root.
    """
    if not (umask := os.umask(0o022)) & stat.S_IWOTH:
        umask |= 0o022
    os.umask(umask)


def _modes() -> tuple[int, int]:
    """Return the modes of new files and folders, on which Linux then applies the umask.

    The umask itself is that of the whole notebook and stays as it is.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        umask = next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))
    except (OSError, StopIteration):  # another system
        umask = 0o022
    taken = 0 if umask & stat.S_IWOTH else 0o022
    return 0o666 & ~taken, 0o777 & ~taken


FILE_MODE, FOLDER_MODE = _modes()
"""Modes of what this process makes. If the umask gives write access to all users, only the owner gets it."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless they exist."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(FOLDER_MODE, exist_ok=True)
    path.mkdir(FOLDER_MODE, exist_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole; an existing one is replaced."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as file:
        file.write(content)


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
    reader ever sees half a file.

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
    temporary = _temporary(path)
    content = _content(path, data, limit_bytes)
    try:
        if reserve is not None:
            with contextlib.suppress(FileNotFoundError):
                os.rename(reserve, temporary)
        _write_synced(temporary, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as exc:  # file systems without hard links (some FUSE mounts)
            if exc.errno not in (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            return _create(path, temporary.read_bytes())
    finally:
        temporary.unlink(missing_ok=True)
    return True


def write_anew(path: Path, data: object) -> None:
    """Write ``data`` as JSON in place of what ``path`` holds. A reader sees the old or the new text, never a part.

    Raises:
        RlnbError: The text would be larger than a record may be.
        OSError: The disk is full, the folder is not writable, or the like. The old text stays.
    """
    temporary = _temporary(path)
    try:
        _write_synced(temporary, _content(path, data, LARGEST_BYTES))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")


def _content(path: Path, data: object, limit_bytes: int) -> bytes:
    """Return a record's text.

    Raises:
        RlnbError: The text would be larger than the limit.
    """
    content = (json.dumps(data, indent=1, ensure_ascii=False, default=plain) + "\n").encode()
    if len(content) > limit_bytes:
        raise RlnbError(f"{path.name} would be larger than {limit_bytes >> 20} MiB. Use shorter values.")
    return content


def _write_synced(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, FILE_MODE), "wb") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _create(path: Path, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return True


@functools.lru_cache(maxsize=1024)
def warn_once(text: str) -> None:
    """Log a warning only the first time, since lists of runs read the same records again and again."""
    logger.warning("%s", text)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Other files are refused: a pipe would block, and a device never ends.

    Raises:
        RlnbError: The path is not a regular file.
        OSError: The file does not exist, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RlnbError(f"{path} is not a regular file. Move it away.")
    return open(descriptor, "rb")


def read_json(path: Path, limit_bytes: int = LARGEST_BYTES) -> dict[str, Json] | None:
    """Return the JSON object in ``path``; None if the file does not exist.

    Raises:
        RlnbError: The file cannot be read, is larger than the limit, or is not a complete JSON object, which rlnb
            never writes.
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > limit_bytes:
                raise RlnbError(f"{path} is larger than {limit_bytes >> 20} MiB. Move it away.")
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise RlnbError(f"{path} cannot be read: {exc.strerror or exc}. Make it readable, or move it away.") from exc
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        raise RlnbError(f"{path} is damaged ({exc}). Another program wrote or truncated it. Move it away.") from exc
    if not isinstance(data, dict):
        raise RlnbError(f"{path} is damaged: it is not a JSON object. Move it away.")
    return data


def stamp(path: str | Path) -> str:
    """Return a text that changes whenever a file is written; empty if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_mtime_ns}-{status.st_size}"


def tail(path: Path, lines: int = 40, limit_bytes: int = 65536) -> str:
    """Return the last ``lines`` lines of a log; an empty string if it is missing, unreadable or not a regular file."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit_bytes))
            text = file.read().decode("utf-8", "replace")
    except (OSError, RlnbError):
        return ""
    return "\n".join(text.splitlines()[-lines:])
