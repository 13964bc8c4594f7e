"""Logs of a run's jobs, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import rlnb
from rlnb_jupyterlab.messages import LogMessage
from rlnb_jupyterlab.pages import Page

MOST_BYTES = 256 * 1024
"""Maximum bytes of one piece."""
FIRST_BYTES = 64 * 1024
"""Bytes of a log's end that a page gets when it begins to follow the log."""


def path_of(run: rlnb.Run, job: int, name: str) -> Path | None:
    """Return a log of a job by its name; None if the job has no such log, or only a link to another place."""
    folder = next((record.folder for record in run.jobs if record.folder.number == job), None)
    log = next((path for path in folder.logs() if path.name == name), None) if folder else None
    return log if log is not None and lies_in(log, run.path) else None


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path below a folder is a plain file (no pipe, no device), with no symbolic link on the way."""
    try:
        return path.is_file() and path.resolve() == folder.resolve() / path.relative_to(folder)
    except (OSError, ValueError):  # such as a name that is too long
        return False


def piece(path: Path, offset: int) -> tuple[str, int, int]:
    """Return a part of a log, and the bytes at which it begins and ends.

    Args:
        path: The log.
        offset: Byte at which to begin; a negative one counts from the end.
    """
    size = path.stat().st_size
    begin = max(0, size + offset) if offset < 0 else min(offset, size)
    with open(path, "rb") as file:
        file.seek(begin)
        content = file.read(MOST_BYTES)
    cut = len(content) if begin + len(content) == size else content.rfind(b"\n") + 1 or len(content)
    return content[:cut].decode(errors="replace"), begin, begin + cut


def news(page: Page, log: tuple[str, int, str], run: rlnb.Run) -> Iterator[LogMessage]:
    """Yield the new text of a log that a page follows."""
    key, job, name = log
    path, position = path_of(run, job, name), page.followed.get(log)
    if path is None or position is None:
        return
    text, _, end = piece(path, position)
    if text:
        yield LogMessage(key=key, job=job, name=name, text=text, reset=position < 0)
    if log in page.followed:
        page.followed[log] = end
