"""Copy a single file of a run here, on request."""

from __future__ import annotations

import dataclasses

from rlnb.errors import RlnbError
from rlnb.mirror.frames import Channel, Closed, Frame
from rlnb.mirror.part import Part
from rlnb.records.layout import RunDir

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
    part = Part(run.path / wish.path, ending="copy")
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
