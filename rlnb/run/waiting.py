"""Wait for trainings to end, and show their progress meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rlnb.jobs.jobs import pause_s, say_losses
from rlnb.records.facts import RunFacts
from rlnb.spec import ENDED

SHOW_S = 1.0
"""Seconds between two reads of a run's progress; on a small machine, reading slows the training."""


def wait_for(runs: Sequence[RunFacts], timeout_s: float | None = None) -> None:
    """Wait for trainings to end, however they do, and show their progress.

    Raises:
        TimeoutError: One of them has not ended after ``timeout_s`` seconds; it continues.
    """
    from rlnb.curves.progress import progress

    begin_s, last_show, told = time.monotonic(), float("-inf"), set[Path]()
    with progress(*runs) as show:
        while going := [run for run in runs if run.state not in ENDED]:
            if time.monotonic() - last_show > SHOW_S:
                show()
                last_show = time.monotonic()
                told |= {run.path for run in runs if run.path not in told and say_losses(run)}
            if timeout_s is not None and time.monotonic() - begin_s > timeout_s:
                states = ", ".join(f"{run.id} is still {run.state}" for run in going)
                raise TimeoutError(
                    f"{states} after {timeout_s} s. {'It continues' if len(going) == 1 else 'They continue'}."
                )
            time.sleep(pause_s(time.monotonic() - begin_s))
        show()
    for run in runs:
        if run.path not in told:
            say_losses(run)
