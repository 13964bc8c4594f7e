"""Cancel jobs: ask them to end, and take them out of their queue, for which records of other users never decide."""

from __future__ import annotations

import logging
import math

from rlnb.errors import RlnbError, RunError
from rlnb.hooks import plugins
from rlnb.records.record import JobRecord, RunRecord
from rlnb.records.trust import decided_by, foreign_owner
from rlnb.spec import ENDED
from rlnb.storage import files

logger = logging.getLogger(__name__)


def cancel(record: RunRecord, save_s: float = 25.0) -> None:
    """Ask every unfinished job of a run to end; take those that wait, or whose host is gone, out of their queue.

    Args:
        record: The run.
        save_s: Seconds after which a training is ended even if it has not saved.

    Raises:
        RlnbError: ``save_s`` is not a number of seconds, a record is malformed, the launcher is not installed, or its
            queue does not answer. In the last three cases every other job is out of the queue.
        RunError: The run belongs to another user, and the request cannot be written.
    """
    if isinstance(save_s, bool) or not isinstance(save_s, int | float) or not 0 <= save_s < math.inf:
        raise RlnbError(f"save_s={save_s!r} is not a number of seconds. Use 0 or more.")
    jobs = [job for job in record.jobs if job.folder.command.exists()]
    jobs = [job for job in jobs if job.state() not in ENDED or job.goes_on() or job.may_wait()]
    for job in jobs:
        _ask(record, job, save_s)
    faults = []
    for job in jobs:
        try:
            withdraw(record, job)
        except RlnbError as exc:
            faults.append(str(exc))
    if faults:
        raise RlnbError("\n".join(faults))


def _ask(record: RunRecord, job: JobRecord, save_s: float) -> None:
    """Write the request to cancel a job.

    Raises:
        RunError: The run belongs to another user, and the request cannot be written.
    """
    try:
        files.write_once(job.folder.cancel, {"time": files.now(), "save_s": save_s})
    except OSError as exc:
        if (owner := foreign_owner(record, job.folder)) is None:
            raise
        fix = "Ask that user to cancel it."
        raise RunError(f"{record.id} belongs to the user {owner}, who alone can cancel it. {fix}") from exc


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
