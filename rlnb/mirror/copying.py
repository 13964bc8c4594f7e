"""Copy a single file of a run here, on request."""

from __future__ import annotations

import dataclasses
import os

from rlnb.errors import RlnbError
from rlnb.mirror.frames import Channel, Closed, Frame
from rlnb.records.layout import RunDir
from rlnb.storage import files

SILENT_S = 30.0
"""Seconds without a part of the file after which the connection is given up."""


def copy(channel: Channel, run: RunDir, wish: Frame) -> None:
    """Copy a file of a run here. The file appears as a whole; a copy that ended too early goes on.

    Args:
        channel: Connection to the other machine.
        run: Folder of the run here.
        wish: Request for the file, without its offset.

    Raises:
        Closed: The connection has ended.
        RlnbError: The other machine has no such file.
    """
    path = run.path / wish.path
    part = path.with_name(f".{path.name}.copy")
    files.make_folder(path.parent)
    with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, files.FILE_MODE), "r+b") as file:
        size, time_ns = file.seek(0, os.SEEK_END), os.fstat(file.fileno()).st_mtime_ns if file.tell() else 0
        channel.send(dataclasses.replace(wish, offset=size))
        while True:
            frame = channel.receive(SILENT_S)
            if frame is None:
                raise Closed(f"nothing has arrived for {SILENT_S:.0f} s")
            if frame.kind == "failed":
                raise RlnbError(str(frame.data.get("error", "")))
            if size and frame.offset == size and time_ns != frame.mtime_ns:
                file.truncate(0)  # the part is of an earlier file
                raise Closed(f"{wish.path} has changed since its first part was copied")
            size = 0
            file.seek(frame.offset)
            file.write(frame.body)
            if frame.offset + len(frame.body) >= frame.total:
                file.truncate(frame.total)
                break
            file.flush()
            os.utime(file.fileno(), ns=(frame.mtime_ns, frame.mtime_ns))
    os.utime(part, ns=(frame.mtime_ns, frame.mtime_ns))
    part.replace(path)
