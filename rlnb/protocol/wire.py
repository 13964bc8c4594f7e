"""Lines that are read from a pipe, with a limit on the wait for each."""

from __future__ import annotations

import os
import select

_LONG_S = 3600.0
BEGIN = b"\0rlnb-relay 1\n"
"""First bytes of a relay's output. Before them, a login shell of its machine may print something."""


class Lines:
    """Reads lines from a pipe.

    A buffered file would not do: a line that it has read ahead does not show in ``select``.

    Args:
        descriptor: Descriptor of the pipe. Other readers would take lines away.
        after: Bytes before the first line; empty if there are none. Everything up to these bytes is left out.
    """

    def __init__(self, descriptor: int, *, after: bytes = b"") -> None:
        self._descriptor, self._after = descriptor, after
        self._read, self._ended = b"", False
        self._rest = 0
        """Number of bytes that :meth:`take` still waits for, or that it has given up."""

    def waiting(self, within_s: float) -> bool:
        """Return whether a line arrives within some seconds. The end of the input counts as a line."""
        while not self._ended and (self._after or b"\n" not in self._read):
            if not self._take(within_s):
                return False
        return True

    def next(self) -> bytes | None:
        """Wait for a line and return it without its end; None at the end of the input."""
        line = self.peek()
        if line is not None:
            self._read = self._read[len(line) + 1 :]
        return line

    def peek(self) -> bytes | None:
        """Wait for a line and return it as :meth:`next`, which returns the same line again."""
        while not self.waiting(_LONG_S):
            pass
        return None if self._after or b"\n" not in self._read else self._read.partition(b"\n")[0]

    def take(self, count: int) -> bytes:
        """Wait for some bytes that are no line and return them; fewer at the end of the input.

        If an interrupt ends the wait, all of these bytes are left out. The lines after them stay lines.
        """
        while self._after and not self._ended:
            self._take(_LONG_S)
        content, self._read = bytearray(self._read[:count]), self._read[count:]
        self._rest = count - len(content)
        while self._rest and not self._ended:
            data = os.read(self._descriptor, min(self._rest, 1 << 20))
            self._rest -= len(data)
            content += data
            self._ended = not data
        return bytes(content)

    def _take(self, within_s: float) -> bool:
        """Read what has arrived; return whether there was anything."""
        if self._ended or not select.select([self._descriptor], [], [], within_s)[0]:
            return False
        data = os.read(self._descriptor, 1 << 16)
        left_out, self._rest = self._rest, max(0, self._rest - len(data))
        self._read, self._ended = self._read + data[left_out:], not data
        if self._after and self._after in self._read:
            self._read, self._after = self._read.partition(self._after)[2], b""
        return True


def skip(descriptor: int, after: bytes) -> None:
    """Read from a pipe up to some bytes, or to the end of the input, and not further."""
    read = b""
    while not read.endswith(after) and (byte := os.read(descriptor, 1)):
        read += byte
