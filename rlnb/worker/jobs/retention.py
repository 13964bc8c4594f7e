"""Retention: a run with a limit on its checkpoints removes the others while it trains."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from rlnb.errors import RlnbError
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.storage import files

logger = logging.getLogger(__name__)

EVERY_S = 10.0


@contextlib.contextmanager
def retention(job: JobDir, keep: int | None) -> Iterator[None]:
    """Keep the newest ``keep`` checkpoints and the best by reward; remove the others regularly and at the end.

    None is removed before the training has started, since it may go on from one of them.

    Args:
        job: Job of the training.
        keep: Number of newest checkpoints to keep; None keeps all checkpoints.
    """
    if keep is None:
        yield
        return
    record, over = RunRecord(run_dir_of(job.path).path), threading.Event()

    def tidy_if_started() -> None:
        if files.there(job.started):
            tidy(record, keep)

    def tidy_now_and_then() -> None:
        while not over.wait(EVERY_S):
            tidy_if_started()

    thread = threading.Thread(target=tidy_now_and_then, name="rlnb-retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        tidy_if_started()


def tidy(record: RunRecord, keep: int) -> None:
    """Remove spare checkpoints. A process that is reading one keeps its open file."""
    try:
        checkpoints = record.checkpoints
        for path in checkpoints.spare(keep):
            checkpoints.delete(path)
    except (OSError, RlnbError) as exc:  # a failed removal must not end a training
        logger.warning("spare checkpoints of %s were not removed: %s", record.id, exc)
