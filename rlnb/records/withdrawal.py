"""Take a cancelled job out of the queue of its launcher, for which the records of other users never decide."""

from __future__ import annotations

import logging

from rlnb import plugins
from rlnb.records.owner import another_users
from rlnb.records.record import JobRecord, RunRecord

logger = logging.getLogger(__name__)


def withdraw(record: RunRecord, job: JobRecord) -> None:
    """Take a job that waits, or whose host is gone, out of its launcher's queue, if the job is this user's.

    The records of a job name entries of a queue. Those of another user could name any job of this user, so nothing is
    done for them, which a warning says.

    Args:
        record: The run.
        job: Job of the run, for which the request to cancel is written.

    Raises:
        RlnbError: A record is malformed, the launcher is not installed, or its queue does not answer.
    """
    if (owner := another_users(record, job.folder)) is not None:
        what = f"{record.id} belongs to the user {owner}, so only the request to cancel was written."
        logger.warning("%s If its jobs stay in a queue, ask that user to take them out.", what)
    elif (handle := job.handle) is not None:
        plugins.load(plugins.launcher(record.manifest.launcher).factory)().cancel(handle, job.folder.path)
