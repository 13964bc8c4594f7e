"""The continuation of a training that its cluster interrupted, in a further job."""

from __future__ import annotations

from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.records.layout import JobDir
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import RunRecord
from rlnb.run.continuation import what_is_left
from rlnb.run.jobs import ResumedError, refuse_without_resuming, submit
from rlnb.run.run import Run
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json


def has_saved(record: RunRecord, job: JobDir) -> bool:
    """Return whether a run has a checkpoint that is newer than the start of a training."""
    since = job.command.stat().st_mtime
    return any(path.stat().st_mtime > since for path in record.checkpoints)


def rest_of(record: RunRecord, job: JobDir) -> TrainOptions | None:
    """Return the options of the training that goes on after an interrupted one; None if no iterations are left.

    Until the interrupted training has written a checkpoint, its own options (init_from or checkpoint) still apply.

    Raises:
        RunError: The training had begun, and its library cannot resume.
    """
    if files.there(job.started):
        refuse_without_resuming(record)
    run = Run(record.path)  # its state is "queued" here, so run.resume() would refuse
    options = options_of(TrainOptions, job)
    try:
        if has_saved(record, job):
            return what_is_left(run, trust=options.trust)
    except RlnbError:  # the interruption came at the very end
        return None
    return options


def go_on(job: JobDir, record: RunRecord, *, restart: int, max_restarts: int) -> JobDir | None:
    """Add the job that continues an interrupted training, and return its folder; None if no iterations are left.

    The owner of the run is not asked about: this process already runs the command of its records. If another process
    was first, its job is returned.

    Args:
        job: The interrupted training.
        record: Its run.
        restart: Number of the restart, from 1.
        max_restarts: Number of restarts after which the training is not continued.

    Raises:
        RlnbError: The job cannot be added, or the library cannot resume.
    """
    options = rest_of(record, job)
    if options is None:
        return None
    new = Job(kind="train", options=to_json(options), after=job.path.name, restart=restart, max_restarts=max_restarts)
    try:
        return submit(record.folder, record.manifest, new, plugins.launcher_of(record.manifest))
    except ResumedError:
        return job.sibling(job.successor_name())
