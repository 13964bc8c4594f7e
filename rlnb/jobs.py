"""Doing something with a run that exists: which checkpoint, in which process, and how it ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb import warm as warm_process
from rlnb.errors import RlnbError, RunError, WorkerError, unknown
from rlnb.records import files
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord, RunRecord, StockRecord
from rlnb.records.script import ScriptRecord
from rlnb.serial import to_json
from rlnb.settings import options
from rlnb.spec import Command, Job, JobKind, Result, State

ENDED: tuple[State, ...] = ("completed", "failed", "cancelled", "timeout", "lost")
POLL_S = 0.25


def checkpoint_of(record: RunRecord, wanted: str | Path | None) -> str:
    """Return the checkpoint of a run that is meant, relative to the run's folder where it lies in it.

    Args:
        record: The run.
        wanted: Its name or path; None is the last.

    Raises:
        RunError: The run has none, or is not one to go on with.
        NotFoundError: There is no such file.
    """
    if isinstance(record, StockRecord):
        raise RunError(f"{record.path} was written by stock Isaac Lab; rlnb only reads it.")
    if isinstance(record, ScriptRecord):
        raise RunError(f"{record.id} is a script's: what can be done with its checkpoints, the script knows.")
    found = record.checkpoints
    if wanted is None and not found:
        raise RunError(f"{record.id} ({record.state}) has no checkpoint yet. Its log: run.logs()")
    if wanted is None:
        return str(found[-1].relative_to(record.path))
    path = next((path for path in found if path.name == str(wanted) or path == Path(wanted)), Path(wanted))
    if not path.is_file():
        raise unknown("checkpoint", str(wanted), [path.name for path in found], has=record.id)
    return str(path.relative_to(record.path)) if path.is_relative_to(record.path) else str(path.absolute())


def do(record: RunRecord, kind: JobKind, chosen: dict[str, Any]) -> JobDir:
    """Do a job now, in the warm worker where that is allowed, and wait for it.

    Raises:
        RunError: It failed.
    """
    from rlnb import api
    from rlnb.notebook.display import status

    with status(f"{kind} {chosen['checkpoint']}"):
        # A wrapped command (a container, say) is not what the warm worker runs in.
        plain = Command(argv=(sys.executable,))
        wrapped = plugins.manager().hook.rlnb_wrap_command(command=plain, manifest=record.manifest) is not None
        if options.warm and plugins.library(record.library).simulator and not wrapped:
            folder = _in_warm_worker(record, kind, chosen)
        else:
            folder = api.start_job(record, kind, chosen, warm=False)
        job = JobRecord(folder, record.manifest.launcher)
        while job.state() not in ENDED:
            time.sleep(POLL_S)
    raise_unless_completed(record, job)
    return folder


def _in_warm_worker(record: RunRecord, kind: JobKind, chosen: dict[str, Any]) -> JobDir:
    worker = warm_process.warm_worker(record.manifest.python, record.manifest.asset_root)
    folder = record.folder.next_job(kind)
    files.write_once(folder.job, to_json(Job(kind=kind, options=chosen)))
    try:
        worker.request(kind, job_dir=str(folder.path))
    except (RlnbError, WorkerError) as exc:
        first, _, rest = str(exc).partition("\n")
        failed = Result(outcome="failed", error=first, detail=rest, ended=files.now())
        files.write_once(folder.result, to_json(failed))
    except BaseException:  # interrupted: without a result it would look unfinished for ever
        stopped = Result(outcome="cancelled", error="the waiting for it was interrupted", ended=files.now())
        files.write_once(folder.result, to_json(stopped))
        raise
    return folder


def raise_unless_completed(record: RunRecord, job: JobRecord | None) -> None:
    """Raise a :class:`RunError` that names the log and the next call, unless the job has completed."""
    if job is None:
        if record.state == "lost":
            raise RunError(
                f"{record.id} is lost: its kernel ended before the training started.\n"
                f"  next: start the training again. To remove this run: rlnb runs prune {record.id} --whole --yes"
            )
        return
    state = job.state()
    if state == "completed":
        return
    result = job.result if state != "lost" else None
    told = job.folder.log(result.values.get("node", 0) if result else 0)
    log = told if told.exists() else next(iter(job.folder.logs()), job.folder.path)
    said = "" if result else f". The last that it said: {last}" if (last := files.tail(told, 1).strip()) else ""
    gone = f"its process is gone and left no result (killed, or the machine went down){said}"
    reason = result.error if result else gone
    verb = "resume()" if record.checkpoints else "logs(200)"
    raise RunError(
        f"{record.id} ({job.kind}) {state}: {reason}\n  log:  {log}\n  next: rlnb.get_run({record.id!r}).{verb}"
        + (f"\n\n{result.detail}" if result and result.detail else "")
    )
