"""Frames, the messages between two machines: each is a line of JSON and some bytes, on a pair of byte streams."""

from __future__ import annotations

import dataclasses
import json
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.storage.serial import from_json

BEGIN = b"\0rlnb-mirror 1\n"
"""First bytes of the other machine's output. A login shell may print something before them."""
MOST_NOISE = 1 << 16
"""Most bytes before :data:`BEGIN`."""
MOST_HEAD = 1 << 24
"""Most bytes of a frame's line. The frame with the sizes of all files has the longest one."""
LARGEST = 1 << 63
"""Every position, size and time in a frame is below this number."""
CHUNK = 1 << 18
"""Most bytes of a file in one frame."""


class Closed(Exception):
    """The stream has ended. The message is the reason, or the text that arrived in place of frames."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One message."""

    kind: str
    """What the frame is about, such as ``"grow"``."""
    path: str = ""
    """Path of a file below the folder of the run, or the name of a job."""
    offset: int = 0
    """Position of the body in the file, in bytes."""
    total: int = 0
    """Size of the file, in bytes; a part is complete once this size is reached."""
    mtime_ns: int = 0
    """Time of the file's last change, by the clock of its machine."""
    data: Mapping[str, Json] = field(default_factory=dict)
    """Further values."""
    body: bytes = b""
    """Bytes of a file."""


class Channel:
    """Sends frames on one stream and receives them on another.

    A thread always reads, so that two processes that send at the same time do not wait for each other.

    Args:
        reader: Stream of the frames that arrive.
        writer: Stream of the frames that leave.
        after: Bytes that come before the first frame; empty if there are none.
    """

    def __init__(self, reader: BinaryIO, writer: BinaryIO, *, after: bytes = b"") -> None:
        self._reader, self._writer, self._after = reader, writer, after
        self._frames: queue.SimpleQueue[Frame | Exception] = queue.SimpleQueue()
        self._end: Exception | None = None
        self.ended = False
        """Whether a call has found that the other end is gone."""
        self.heard_s = time.monotonic()
        """Time of the last frame that has arrived, in seconds of the monotonic clock."""
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, frame: Frame) -> None:
        """Send a frame.

        Raises:
            Closed: The other end is gone.
        """
        head = {item.name: getattr(frame, item.name) for item in dataclasses.fields(frame) if item.name != "body"}
        line = json.dumps({**head, "size": len(frame.body)}, ensure_ascii=True).encode() + b"\n"
        try:
            self._writer.write(line + frame.body)
            self._writer.flush()
        except (OSError, ValueError) as exc:
            self.ended = True
            raise Closed(str(exc)) from exc

    def receive(self, timeout_s: float) -> Frame | None:
        """Return the next frame; None if none arrives in time.

        Raises:
            Closed: The stream has ended, or carries something other than frames.
        """
        if self._end is not None:
            raise Closed(str(self._end)) from self._end
        try:
            frame = self._frames.get(timeout=max(0.0, timeout_s)) if timeout_s > 0 else self._frames.get_nowait()
        except queue.Empty:
            return None
        if isinstance(frame, Exception):
            self._end, self.ended = frame, True
            raise Closed(str(frame)) from frame
        return frame

    def _read(self) -> None:
        try:
            self._skip_noise()
            while True:
                frame = self._next()
                self.heard_s = time.monotonic()
                self._frames.put(frame)
        except Exception as exc:  # whatever has arrived, it must do no more than end the connection
            self._frames.put(exc)

    def _skip_noise(self) -> None:
        noise = b""
        while self._after and not noise.endswith(self._after):
            byte = self._reader.read(1)
            if not byte or len(noise) > MOST_NOISE:
                raise Closed(noise.decode(errors="replace").strip())
            noise += byte

    def _next(self) -> Frame:
        line = self._reader.readline(MOST_HEAD)
        if not line.endswith(b"\n"):
            raise Closed("the stream has ended")
        head = json.loads(line)
        if not isinstance(head, dict):
            raise RlnbError("the head of a frame is not a JSON object")
        size = head.pop("size", 0)
        if not isinstance(size, int) or not 0 <= size <= CHUNK:
            raise RlnbError(f"the size of a frame is {size!r}, which is not a number from 0 to {CHUNK}")
        frame = from_json(Frame, head, ignore_unknown=True)
        if not all(0 <= number < LARGEST for number in (frame.offset, frame.total, frame.mtime_ns)):
            raise RlnbError("invalid frame header: a position, size or time is not a number of 63 bits")
        body = self._reader.read(size)
        if len(body) != size:
            raise Closed("the stream has ended within a frame")
        return dataclasses.replace(frame, body=body)
