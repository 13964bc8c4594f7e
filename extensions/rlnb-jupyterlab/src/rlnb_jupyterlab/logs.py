"""Logs of a run's jobs, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import rlnb
from rlnb_jupyterlab.messages import LogMessage
from rlnb_jupyterlab.opening import opened, size_of
from rlnb_jupyterlab.pages import Page

MOST_BYTES = 256 * 1024
"""Maximum bytes of one piece."""
FIRST_BYTES = 64 * 1024
"""Bytes of a log's end that a page gets when it begins to follow the log."""


def open_log(run: rlnb.Run, job: int, name: str) -> BinaryIO | None:
    """Open a log of a job by its name; None if the job has no such log, or only a link to another place."""
    folder = next((record.folder for record in run.jobs if record.folder.number == job), None)
    log = next((path for path in folder.logs() if path.name == name), None) if folder else None
    return opened(log, run.path) if log is not None else None


def piece(file: BinaryIO, offset: int) -> tuple[str, int, int]:
    """Return a part of a log, and the bytes at which it begins and ends.

    Args:
        file: The open log.
        offset: Byte at which to begin; a negative one counts from the end.
    """
    size = size_of(file)
    begin = max(0, size + offset) if offset < 0 else min(offset, size)
    file.seek(begin)
    content = file.read(MOST_BYTES)
    cut = len(content) if begin + len(content) == size else content.rfind(b"\n") + 1 or len(content)
    return content[:cut].decode(errors="replace"), begin, begin + cut


def news(page: Page, log: tuple[str, int, str], run: rlnb.Run) -> Iterator[LogMessage]:
    """Yield the new text of a log that a page follows."""
    key, job, name = log
    position = page.followed.get(log)
    file = open_log(run, job, name) if position is not None else None
    if file is None or position is None:
        return
    with file:
        text, _, end = piece(file, position)
    if text:
        yield LogMessage(key=key, job=job, name=name, text=text, reset=position < 0)
    if log in page.followed:
        page.followed[log] = end
