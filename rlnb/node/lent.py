"""A living simulator that trains for one job, and serves its kernel again afterwards."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from rlnb.node.descendants import descendants
from rlnb.storage.lines import Lines

if TYPE_CHECKING:
    import psutil


class LentWorker:
    """The process of a job whose end is a message, since the process itself goes on.

    Args:
        process: The living simulator, or the wrapper that started it.
        replies: Descriptor of the pipe that it writes its messages to.
    """

    def __init__(self, process: subprocess.Popen[bytes], replies: int) -> None:
        self.pid, self._process, self._replies = process.pid, process, Lines(replies)
        self.ready = False
        """Whether the process has said that it has started."""
        self.returned = True
        """Whether the process is not used by the job, before its begin or after its end."""
        self.line = b'{"returned": true}\n'
        """Line for the kernel at the end."""
        self.greetings: list[bytes] = []
        """Messages by which the process has said that it has started."""
        self.own: list[psutil.Process] = []
        """Processes that do not belong to the job: the simulator, and those that it had started before."""

    def begin(self, line: bytes) -> None:
        """Hand the job over.

        Args:
            line: The kernel's line about it.
        """
        self.own, self.returned = descendants(), False
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def poll(self) -> int | None:
        """Return the exit status of the job, like ``Popen.poll``; 0 once the process is returned."""
        while not self.returned and self._replies.waiting(0.0) and (line := self._replies.next()) is not None:
            message = json.loads(line)
            self.ready = self.ready or "ready" in message or "returned" in message
            self.greetings += [line] if "ready" in message else []
            if "returned" in message:
                self.returned, self.line = True, line + b"\n"
        return 0 if self.returned else self._process.poll()
