"""Follow the log of a run's newest job until the job ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.run.run import Run

FOLLOW_S = 0.2
TAIL_BYTES = 65536
"""Number of bytes at the end of a log that the first read returns."""


def following(run: Run, lines: int) -> Iterator[str]:
    """Yield the last lines of the newest job's logs, then every new line until that job has ended.

    Raises:
        RlnbError: The run has no job yet.
    """
    from rlnb.spec import ENDED

    if not run.jobs:
        raise RlnbError(f"{run.id} has no job yet, so it has no log. To see when it starts: rlnb show {run.id}")
    job, ends = run.jobs[-1], dict[Path, int]()
    while True:
        is_over = job.state() in ENDED  # checked first, so that the last lines are still read below
        for path in job.folder.logs():
            is_first = path not in ends
            start = max(0, path.stat().st_size - TAIL_BYTES) if is_first else ends[path]
            text, ends[path] = appended(path, start, whole_lines=not is_over)
            new = text.splitlines()
            if new := (new[-lines:] if lines else []) if is_first else new:
                yield "\n".join(new)
        if is_over:
            return
        time.sleep(FOLLOW_S)


def appended(path: Path, start: int, *, whole_lines: bool) -> tuple[str, int]:
    """Return the text of a file from byte ``start`` on, and the offset of the first byte after that text.

    With ``whole_lines``, the next call returns an unfinished last line.
    """
    with files.open_regular(path) as file:
        file.seek(start)
        data = file.read()
    if whole_lines:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace"), start + len(data)
