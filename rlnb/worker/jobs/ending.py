"""The end of a training: its summary, its result, and the plugins' hook."""

from __future__ import annotations

import contextlib

from rlnb.hooks.registry import observe
from rlnb.records.find import open_record
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.worker.jobs.context import open_job

SUMMARY_S = 3.0
"""Seconds after which a training ends without a summary, because its event files are too long to be read in time."""


def end(job: JobDir, result: Result) -> None:
    """Write the result of a training, unless it has one, and call the plugins' hook.

    Before it, the last values of the metrics are left for lists of runs, so that nothing is written after the result.

    Args:
        job: Folder of the training.
        result: The result.
    """
    if not files.there(job.result):
        with contextlib.suppress(Exception):  # lists read the curves of a run without a summary, so no error matters
            open_record(run_dir_of(job.path).path).write_summary(job, SUMMARY_S)
    if files.write_once(job.result, result, job.reserve):
        opened = open_job(job.path)
        observe("rlnb_run_finished", run_dir=opened.run.path, manifest=opened.manifest, result=result)
