"""Which files of a run are copied to this machine, and how."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, TypeAlias

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.mirror.frames import Channel, Closed, Frame
from rlnb.records import remote
from rlnb.records.checkpoints import belongs, folder_of
from rlnb.records.layout import COMMAND, HANDLE, JOB, JOBS, LAST_POINTS, RunDir
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below

Way: TypeAlias = Literal["grow", "whole", "once", "list"]
"""How a file travels: by what is added to it, as a whole whenever it changes, once, or only by name and size."""
MOST_BYTES = 1 << 26
"""Largest file that travels by itself, in bytes, unless it is a record of a job."""
STAYS = frozenset({"source", "inputs", "like", "notes", "manifest.json", remote.REMOTE, "init"})
"""Folders and files of a run that only one of the two machines reads, by their first name."""
DIGEST_BYTES = 4096
"""Bytes at the end of a growing file by which the two machines compare their copies."""
FILES = ("checkpoint", "init_from")
"""Options of a job with paths of files, which travel with the job if they are not those of its run."""
RECORDS = re.compile(rf"{JOBS}/\d+-[a-z]+/[\w-]+\.json")
RESULT = "result.json"
ONCE = frozenset({JOB, COMMAND, RESULT, "started.json", "cancel.json", "successor.json", "closed.json"})
"""Records of a job that are written once, here or there."""
OWN = frozenset(
    {HANDLE, LAST_POINTS, "waits.json", remote.ORDER, remote.SENT, remote.BEGUN, remote.SETTLED, remote.LOG}
)
"""Files of a job that each machine writes for itself."""
PASSING = re.compile(rf"{JOBS}/\d+-[a-z]+/node\d+\.silent")
"""Marks that exist only as long as something lasts."""
GROWS = re.compile(r"tfevents|\.log$|\.jsonl$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A file of a run."""

    way: Way
    size: int
    """Bytes."""
    mtime_ns: int


def way_of(path: str, library: Library) -> Way | None:
    """Return how a file travels; None if it stays where it is.

    Args:
        path: Path of the file below the folder of the run.
        library: Library of the run, which names its checkpoints.
    """
    parts = PurePosixPath(path).parts
    name = parts[-1] if parts else ""
    below_logs = PurePosixPath(*parts[1:]) if parts and parts[0] == "logs" else PurePosixPath()
    checkpoint = folder_of(below_logs, library)
    visible = parts if checkpoint is None else checkpoint.parts  # a file in it may have a name such as .metadata
    if not is_inside(path) or parts[0] in STAYS or any(part.startswith(".") for part in visible):
        return None
    if checkpoint is not None:
        return "list"
    if parts[0] == "view":
        return "whole" if path == "view/frame.npz" else None
    if parts[0] == JOBS and (name in OWN or name.endswith(".alive")):
        return None
    if GROWS.search(name):
        return "grow"
    if belongs(below_logs, library):
        return "list"
    return "once" if RECORDS.fullmatch(path) and name in ONCE else "whole"


def most_bytes(path: str) -> int:
    """Return the largest size in bytes at which a file travels by itself. Every record that can be read is below it."""
    return files.LARGEST_BYTES if RECORDS.fullmatch(path) else MOST_BYTES


def is_inside(path: str) -> bool:
    """Return whether a path from another machine leads to a place below the folder of the run."""
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and all(part not in ("", ".", "..") for part in parts)


def scan(run: RunDir, library: Library) -> dict[str, Entry]:
    """Return the files of a run that travel, by path below its folder. The results of jobs come last.

    Thus, with the result of a job, everything that was written before it has arrived.
    """
    results = [job.result for job in run.jobs() if files.there(job.result)]
    paths = [path for path in files_below(run.path) if path.name != RESULT]
    entries = {path.relative_to(run.path).as_posix(): _entry(run, path, library) for path in (*paths, *results)}
    return {path: entry for path, entry in entries.items() if entry is not None}


def _entry(run: RunDir, path: Path, library: Library) -> Entry | None:
    way = way_of(path.relative_to(run.path).as_posix(), library)
    if way is None:
        return None
    try:
        if way != "grow":
            status = os.lstat(path)
            if not os.path.isfile(path) or os.path.islink(path):
                return None
        else:
            with files.open_regular(path) as file:  # a shared file system is exact once a file is opened
                status = os.fstat(file.fileno())
    except (OSError, RlnbError):
        return None
    if way in ("whole", "once") and status.st_size > most_bytes(path.relative_to(run.path).as_posix()):
        way = "list"
    return Entry(way=way, size=status.st_size, mtime_ns=status.st_mtime_ns)


def digest(path: Path, end: int) -> str:
    """Return a digest of the last bytes of a file before a position, which differs after the file was written anew.

    Raises:
        RlnbError: The path is not a regular file.
        OSError: The file does not exist, or cannot be read.
    """
    begin = max(0, end - DIGEST_BYTES)
    with files.open_regular(path) as file:
        file.seek(begin)
        return hashlib.sha256(file.read(end - begin)).hexdigest()


def chunks(file: BinaryIO, offset: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of a file, each with its position.

    Args:
        file: The file.
        offset: Position of the first part, in bytes.
        end: Position after the last part.
        size: Most bytes of a part.
    """
    file.seek(offset)
    while offset < end:
        body = file.read(min(size, end - offset))
        if not body:
            return
        yield offset, body
        offset += len(body)


# -- a part of a file ------------------------------------------------------------------------------------------------


class PartialFile:
    """The first bytes of a file. The file appears as a whole with the last of its frames.

    Args:
        path: Path of the file.
        most_bytes: Largest size of the file; None sets no limit.
        ending: Last part of the name of the hidden file that holds the bytes.
    """

    def __init__(self, path: Path, most_bytes: int | None = None, ending: str = "part") -> None:
        self.path = path.with_name(f".{path.name}.{ending}")
        self._whole, self._most_bytes = path, most_bytes

    def status(self) -> tuple[int, int]:
        """Return the number of bytes, and the time of the file's last change; zeros if nothing has arrived."""
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return 0, 0
        return status.st_size, status.st_mtime_ns

    def write(self, frame: Frame, *, once: bool = False) -> bool:
        """Write the bytes of a frame; return whether they were the last.

        Args:
            frame: Its first byte is that of the file, or the one that is missing.
            once: Whether a file that exists stays as it is.

        Raises:
            Closed: The frame does not fit the bytes that are here, or the file would be too large.
            OSError: The bytes cannot be written.
        """
        end = frame.offset + len(frame.body)
        if end > frame.total or (self._most_bytes is not None and frame.total > self._most_bytes):
            raise Closed(f"{frame.path} is larger than it may be")
        files.make_folder(self.path.parent)
        write_at(self.path, frame, exactly=True)
        if end < frame.total:
            return False
        if once and files.there(self._whole):
            entries.remove(self.path)
        else:
            entries.move(self.path, self._whole)
        return True


def write_at(path: Path, frame: Frame, *, exactly: bool = False) -> None:
    """Write the bytes of a frame at their position in a file, which then ends with them.

    Args:
        path: The file; a link is not followed.
        frame: Its bytes replace those from their position on.
        exactly: Whether the bytes have to be the first ones, or to begin at the end of the file.

    Raises:
        Closed: The file does not end at that position.
        OSError: The bytes cannot be written.
    """
    with entries.open_to_change(path) as file:
        size = file.seek(0, os.SEEK_END)
        if frame.offset > size or (exactly and frame.offset not in (0, size)):
            raise Closed(f"{frame.path} has {size} bytes here, and {frame.offset} are needed")
        file.truncate(frame.offset)
        file.seek(frame.offset)
        file.write(frame.body)
        file.flush()
        if frame.mtime_ns:
            os.utime(file.fileno(), ns=(frame.mtime_ns, frame.mtime_ns))


# -- copying from the other machine ----------------------------------------------------------------------------------


SILENT_S = 30.0
"""Seconds without a part of the file after which the connection is given up."""


def copy(channel: Channel, run: RunDir, wish: Frame) -> None:
    """Copy a file of a run here. The file appears as a whole; a copy that ended too early goes on.

    A file that has changed since then is copied from its first byte.

    Args:
        channel: Connection to the other machine.
        run: Folder of the run here.
        wish: Request for the file, without its offset.

    Raises:
        Closed: The connection has ended, or the file has changed during the copy.
        RlnbError: The other machine has no such file.
        OSError: The file cannot be written.
    """
    part = PartialFile(run.path / wish.path, ending="copy")
    size, mtime_ns = part.status()
    channel.send(dataclasses.replace(wish, offset=size, mtime_ns=mtime_ns))
    is_whole = False
    while not is_whole:
        frame = channel.receive(SILENT_S)
        if frame is None:
            raise Closed(f"nothing has arrived for {SILENT_S:.0f} s")
        if frame.kind == "failed":
            raise RlnbError(str(frame.data.get("error", "")))
        is_whole = part.write(frame)
