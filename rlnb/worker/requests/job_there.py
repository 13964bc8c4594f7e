"""A job of a run whose folder the kernel does not share with this machine; the kernel gets copies of its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from rlnb.protocol.requests import JobFiles, RunJobThere
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.storage.entries import files_below
from rlnb.storage.serial import from_json
from rlnb.worker.jobs.job import do


def do_job(request: RunJobThere) -> JobFiles:
    """Do a job, and return copies of the files that it has written. A job that fails leaves no folder."""
    job, out = JobDir(Path(request.job_dir)), Path(request.out)
    run = run_dir_of(job.path)
    files.make_folder(job.path)
    files.write_once(job.job, request.job)
    try:
        do(request.kind, job.path)
    except BaseException:
        shutil.rmtree(job.path, ignore_errors=True)
        raise
    copies = {}
    for number, path in enumerate(_files_of(job)):
        copy = out / f"{number}-{path.name}"
        shutil.copyfile(path, copy)
        copies[path.relative_to(run.path).as_posix()] = str(copy)
    return JobFiles(files=copies)


def _files_of(job: JobDir) -> Iterator[Path]:
    """Yield what a job has written: its records, its film, its exports, and at the end its result."""
    run = run_dir_of(job.path)
    yield from (path for path in (job.evaluation, job.rollout) if files.there(path))
    yield from files_below(run.media, lambda name: Path(name).stem == job.path.name)
    result = from_json(Result, files.read_json(job.result) or {})
    yield from (run.path / str(path) for path in result.values.values() if job.kind == "export")
    yield job.result
