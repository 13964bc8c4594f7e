"""The end of a run's log, followed until its job ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError

if TYPE_CHECKING:
    from rlnb.run.run import Run

FOLLOW_S = 0.2
TAIL_BYTES = 65536
"""A log is read from no further back than this."""


def follow(run: Run, lines: int) -> Iterator[str]:
    """Yield the last lines of the newest job's logs, then what is appended to them until that job has ended.

    Raises:
        RlnbError: The run has no job yet.
    """
    from rlnb.spec import ENDED

    if not run.jobs:
        raise RlnbError(f"{run.id} has no job yet, so it has no log.")
    job, ends = run.jobs[-1], dict[Path, int]()
    while True:
        ended = job.state() in ENDED  # asked first: what is written before the end is then read below
        for path in job.folder.logs():
            first = path not in ends
            start = max(0, path.stat().st_size - TAIL_BYTES) if first else ends[path]
            text, ends[path] = appended(path, start, whole_lines=not ended)
            new = text.splitlines()
            if new := (new[-lines:] if lines else []) if first else new:
                yield "\n".join(new)
        if ended:
            return
        time.sleep(FOLLOW_S)


def appended(path: Path, start: int, *, whole_lines: bool) -> tuple[str, int]:
    """Return what a file holds from byte ``start`` on, and the byte after it."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    if whole_lines:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace"), start + len(data)
