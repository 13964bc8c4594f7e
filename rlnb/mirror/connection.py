"""A process on the other machine, reached by a command whose standard streams lead there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, cast

from rlnb.display.status import say
from rlnb.mirror.frames import BEGIN, Channel, Closed, Frame

END_S = 2.0
"""Seconds that the command has to end once its input is closed."""
SAY_S = 1.0
"""Seconds between two updates of the status line while an answer has not come."""
MOST_OUTPUT = 1 << 20
"""Size of the error output in bytes, above which it is emptied."""
MOST_ERROR = 4000
"""Most bytes that are read from the end of the error output."""


class Connection:
    """A connection to ``python -m rlnb.mirror`` on the other machine; ends with the ``with`` block, or when closed.

    Args:
        argv: Command that starts the process there.
        place: Name of the other machine.
    """

    def __init__(self, argv: Sequence[str], place: str = "the other machine") -> None:
        self._place = place
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would stay open in what the command leaves behind
        fcntl.fcntl(self._errors, fcntl.F_SETFL, os.O_APPEND)
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # an interrupt in a notebook must not end it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.channel = Channel(cast(BinaryIO, self._process.stdout), cast(BinaryIO, self._process.stdin), after=BEGIN)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, stack: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. The process at the other end sees the end of its input."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    @property
    def code(self) -> int | None:
        """Exit status of the command; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(END_S)
        return None

    @property
    def error(self) -> str:
        """The end of the command's error output."""
        file = self._errors.fileno()  # shared with the command, whose position for writing must not move
        begin = max(0, os.fstat(file).st_size - MOST_ERROR)
        return os.pread(file, MOST_ERROR, begin).decode(errors="replace").strip()

    def reason(self, exc: Closed) -> str:
        """Return why the connection has ended. The error output counts only if the stream itself has ended."""
        return (self.channel.ended and self.error) or str(exc)

    def forget(self) -> None:
        """Empty the error output once it is large, since a connection may last for weeks."""
        if os.fstat(self._errors.fileno()).st_size > MOST_OUTPUT:
            self._errors.truncate(0)

    def answer(self, wish: Frame, within_s: float) -> Frame | None:
        """Return the first frame that follows a request; None if none arrives in time. The status line shows the wait.

        Args:
            wish: The request.
            within_s: Seconds to wait.

        Raises:
            Closed: The connection has ended.
        """
        try:
            self.channel.send(wish)
        except Closed:
            self.channel.receive(END_S)  # raises Closed with the text that was printed in place of frames
            raise
        begin_s = now_s = time.monotonic()
        while now_s < begin_s + within_s:
            if (frame := self.channel.receive(min(SAY_S, begin_s + within_s - now_s))) is not None:
                return frame
            now_s = time.monotonic()
            say(f"{self._place} has not answered yet", now_s - begin_s)
        return None
