"""Do a job of a run in a living simulator, which may be on a machine that shares no folder with this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rlnb.errors import NotFiniteError, RlnbError, WorkerError
from rlnb.records.layout import JOB, JobDir, run_dir_of
from rlnb.records.options import CheckpointOptions
from rlnb.records.record import RunRecord
from rlnb.settings import options
from rlnb.simulation import far, simulator
from rlnb.spec import Job, JobKind, Result
from rlnb.storage import entries, files
from rlnb.storage.serial import to_json
from rlnb.tasks import requests


def in_simulator(record: RunRecord, kind: JobKind, job_options: CheckpointOptions) -> JobDir:
    """Do a job in the living simulator of this call, and return its folder. A failure becomes the job's result."""
    job = Job(kind=kind, options=to_json(job_options))
    folder = record.folder.next_job(kind, lambda name: {JOB: job})
    try:
        if far.shares_no_folder():
            _do_there(record, job, folder)
        else:
            request = requests.RunJob(kind=kind, job_dir=str(folder.path))
            simulator.request(request, *_settings(record), warm=_warm())
    except (RlnbError, WorkerError) as exc:
        first, _, rest = str(exc).partition("\n")
        if isinstance(exc, NotFiniteError):  # as a process of its own writes it
            first = f"{NotFiniteError.__name__}: {first}"
        error, detail = first[: files.MOST_DETAIL], rest[-files.MOST_DETAIL :]
        failed = Result(outcome="failed", error=error, detail=detail, ended=files.now())
        files.write_once(folder.result, failed)
    except BaseException:  # an interrupt: without a result the job would look unfinished forever
        stopped = Result(outcome="cancelled", error="the wait for the job was interrupted", ended=files.now())
        files.write_once(folder.result, stopped)
        raise
    return folder


def _warm() -> bool:
    """Return whether the simulator that lives already does the job. A call that names a launcher may start another."""
    return options.warm or far.of_this_call.get() is None


def _settings(record: RunRecord) -> tuple[str | None, str | None]:
    """Return interpreter and asset root of the worker. The interpreter of a run is one of the run's machine."""
    is_elsewhere = far.shares_no_folder() and not far.has_run(record.path)
    return None if is_elsewhere else record.manifest.python, record.manifest.asset_root


def _do_there(record: RunRecord, job: Job, folder: JobDir) -> None:
    """Do a job on a machine without this folder, and write here what it has written there.

    Raises:
        RlnbError: The job has failed, or a file cannot be written.
    """
    out = folder.path / ".there"
    files.make_subfolder(out)
    try:
        request = requests.RunJobThere(kind=job.kind, job_dir=str(folder.path), job=job, out=str(out))
        answer = simulator.request(request, *_settings(record), warm=_warm())
        _take(folder, answer.files)
    except OSError as exc:
        raise RlnbError(f"The files of the job cannot be written: {exc}. Free space in {record.path}.") from exc
    finally:
        entries.remove_tree(out, ignore_errors=True)


def _take(folder: JobDir, copies: Mapping[str, str]) -> None:
    """Move the files of a job to their places in the folder of its run.

    Raises:
        RlnbError: A path leads to another place than that of a job's files.
        OSError: A file has not arrived, or cannot be moved.
    """
    run, out = run_dir_of(folder.path), folder.path / ".there"
    records = {path.relative_to(run.path) for path in (folder.result, folder.evaluation, folder.rollout)}
    for name, copy in copies.items():
        path = PurePosixPath(name)
        if ".." in path.parts or not (path in records or path.parts[0] in (run.media.name, run.exports.name)):
            raise RlnbError(f"The machine of the simulator has sent {name!r}, which is no file of this job.")
        files.make_folder((run.path / name).parent)
        entries.move(out / Path(copy).name, run.path / name)
