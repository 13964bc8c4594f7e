"""Does one job of a run and records a failure as the job's result."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
import traceback
import types
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rlnb.errors import FreshProcessError, RlnbError, TrainingStopped
from rlnb.protocol.code_location import location_of_error, text_of_error
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.spec import Json, Result

JOB_FUNCTIONS: Mapping[str, str] = types.MappingProxyType(
    {
        "train": "rlnb.worker.jobs.train:train",
        "evaluate": "rlnb.worker.jobs.evaluate:evaluate",
        "export": "rlnb.worker.jobs.export:export",
    }
)
"""Function of each kind of job, as ``"module:function"``. ``function(job_dir)`` does the job in the worker, either in a
process of its own or in the warm simulator, and writes the result."""
ECHO_S = 5.0
"""Seconds a rank waits before reporting a lost peer, so that the peer can report the real cause first."""


def do(kind: str, job_dir: Path) -> None:
    """Do one job and write its result.

    Raises:
        NotFoundError: ``kind`` is not a kind of job.
    """
    from rlnb.errors import unknown
    from rlnb.hooks import plugins

    if kind not in JOB_FUNCTIONS:
        raise unknown("kind of job", kind, JOB_FUNCTIONS, has="Kinds")
    plugins.load(JOB_FUNCTIONS[kind])(job_dir)


def work(kind: str, job_dir: Path, *, fresh: bool = True) -> int:
    """Do one job and return the exit status. An error is written to the job's result.

    Args:
        kind: Kind of the job.
        job_dir: Folder of the job.
        fresh: Whether this process was started for the job.

    Raises:
        FreshProcessError: The job needs a process that was started for it, which this one was not.
    """
    from rlnb.worker.isaac import release, sources, term_errors

    sources.watch()
    files.restrict_umask(job_dir)
    try:
        do(kind, job_dir)
    except TrainingStopped:
        _write(job_dir, kind, _stopped(job_dir))
    except (Exception, SystemExit) as exc:  # Isaac Lab raises SystemExit if Isaac Sim is needed
        if isinstance(exc, FreshProcessError) and not fresh:
            raise
        release.annotate(exc)
        traceback.print_exc()
        _report(kind, job_dir, exit_as_error(term_errors.explained(exc)))
        return 1
    return 0


def _report(kind: str, job_dir: Path, exc: BaseException) -> None:
    from rlnb.records.layout import JobDir
    from rlnb.spec import Result
    from rlnb.worker.jobs.context import open_job

    values: dict[str, Json] = {}
    if _is_echo(exc):
        # On several nodes, a whole node may be gone. Before the training has begun, the network itself may not work.
        if JobDir(job_dir).started.exists() and open_job(job_dir).manifest.resources.nodes > 1:
            values = {"interrupted": True}
        deadline = time.monotonic() + ECHO_S
        while not JobDir(job_dir).result.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    error, detail = told(exc)
    result = Result(
        outcome="failed",
        error=error[: files.MOST_DETAIL],
        detail=detail[-files.MOST_DETAIL :],
        exit_code=1,
        ended=files.now(),
        values=values,
    )
    _write(job_dir, kind, result)


def told(exc: BaseException) -> tuple[str, str]:
    """Return an error and its details as its user should read them. The whole traceback is in the job's log.

    An error in the user's own code begins with its line, and its details are the lines of that code. An error of rlnb
    says what is wrong, so it has no details.
    """
    error = f"{type(exc).__name__}: {exc}"
    if isinstance(exc, RlnbError):
        return error, "\n".join(getattr(exc, "__notes__", ()))
    place, own = location_of_error(exc, _of_plugins()) if isinstance(exc, Exception) else ("", "")
    return (f"{place}: {text_of_error(exc)}", own) if place else (error, traceback.format_exc())


def _of_plugins() -> list[str]:
    """Return the folders of the RL libraries' plugins that are loaded, which may be installed as sources."""
    from rlnb.hooks import plugins

    packages = {library.backend.partition(".")[0].partition(":")[0] for library in plugins.libraries().values()}
    modules = (sys.modules.get(package) for package in packages if package)
    return [f"{Path(module.__file__).parent}/" for module in modules if module is not None and module.__file__]


def _stopped(job_dir: Path) -> Result:
    """Return the result that the agent requested, with the newest checkpoint."""
    from rlnb.hooks import plugins
    from rlnb.records.checkpoints import newest_of
    from rlnb.records.layout import JobDir
    from rlnb.spec import Result
    from rlnb.storage.serial import from_json
    from rlnb.worker.jobs.context import open_job

    opened = open_job(job_dir)
    checkpoint = newest_of(opened.run, plugins.library(opened.manifest.library))
    result = from_json(Result, files.read_json(JobDir(job_dir).stop) or {})
    return dataclasses.replace(result, checkpoint=checkpoint, ended=files.now())


def _write(job_dir: Path, kind: str, result: Result) -> None:
    """Write the result of a job, unless it exists because, for example, a hook raised after the run completed."""
    from rlnb.records.layout import JobDir
    from rlnb.worker.jobs.train import end_training

    job = JobDir(job_dir)
    if kind == "train" and os.environ.get("RANK", "0") == "0":
        end_training(job, result)
    else:
        files.write_once(job.result, result, job.reserve)


def _is_echo(exc: BaseException) -> bool:
    """Return whether an exception, from torch, gloo or NCCL, only reports that another rank is gone."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return False
    return type(exc).__name__.startswith("Dist") or any(word in str(exc) for word in ("gloo", "NCCL", "ncclInternal"))


# -- exits of the user's code ----------------------------------------------------------------------------------------


def exit_as_error(exc: BaseException) -> BaseException:
    """Return an error with the sentence of argparse if a parser has ended this process, else the exception itself.

    argparse prints what it refuses and exits with status 2, which alone says nothing.
    """
    calls = [*traceback.walk_tb(exc.__traceback__)] if isinstance(exc, SystemExit) else []
    refusals = [frame for frame, _ in calls if frame.f_code.co_name == "error" and _is_of_argparse(frame)]
    if not refusals:
        return exc
    caller, line = next((frame, line) for frame, line in reversed(calls) if not _is_of_argparse(frame))
    error = RlnbError(
        f"{caller.f_code.co_filename}, line {line}, parses the command line of the worker, which is rlnb's own. "
        f"argparse says: {refusals[0].f_locals.get('message')}. "
        'Move this line below `if __name__ == "__main__":`.'
    )
    return error.with_traceback(exc.__traceback__)


def _is_of_argparse(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "argparse"
