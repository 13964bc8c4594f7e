"""Take a cancelled job out of the queue of its launcher, for which the records of other users never decide."""

from __future__ import annotations

import logging

from rlnb import plugins
from rlnb.records.owner import decided_by
from rlnb.records.record import JobRecord, RunRecord

logger = logging.getLogger(__name__)


def withdraw(record: RunRecord, job: JobRecord) -> None:
    """Take a job that waits, or whose host is gone, out of its launcher's queue, if no other user wrote its records.

    The records of a job name entries of a queue. Those that another user can write could name any job of this user, so
    nothing is done for them, which a warning says.

    Args:
        record: The run.
        job: Job of the run, for which the request to cancel is written.

    Raises:
        RlnbError: A record is malformed, the launcher is not installed, or its queue does not answer.
    """
    if reason := decided_by(record, job.folder):
        what = f"{record.id} {reason}, so only the request to cancel was written."
        logger.warning("%s If its jobs stay in a queue, its owner takes them out with the queue's own command.", what)
    elif (handle := job.handle) is not None:
        plugins.load(plugins.launcher(record.manifest.launcher).factory)().cancel(handle, job.folder.path)
