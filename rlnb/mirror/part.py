"""A file that arrives in frames from another machine. That machine decides on nothing but the content."""

from __future__ import annotations

import os
from pathlib import Path

from rlnb.mirror.frames import Closed, Frame
from rlnb.storage import entries, files


class Part:
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
