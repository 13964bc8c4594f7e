"""The owner of a run. Its records name programs and modules, so a user who acts on a run trusts its owner.

Also the task of a run, with the run's copy of its module.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import RunError
from rlnb.records.layout import JobDir
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import StockRecord
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage import entries, files
from rlnb.storage.access import another_owner, exposed, others, printable
from rlnb.storage.files import has_hash, source_hash


def foreign_owner(record: RunRecord, job: JobDir | None = None) -> int | None:
    """Return the user id of the owner of a run; None if that is this user, or if the run was deleted.

    The owner of the manifest counts, and that of the run's folder, who can replace the manifest.

    Args:
        record: The run.
        job: A job of the run, whose folder and records count too: a team may share the run's folder. None is no job.

    Raises:
        RunError: The owner of a record cannot be found out.
    """
    folder = record.path.resolve()
    for path in _records(record, job):
        with _told(record):
            if (owner := another_owner(path, folder.parent)) is not None:
                return owner
    return None


def may_be_foreign(record: RunRecord) -> bool:
    """Return whether a run belongs to another user, or may, in a folder of runs that is no team's."""
    try:
        return not options.team and foreign_owner(record) is not None
    except RunError:
        return True


def decided_by(record: RunRecord, job: JobDir | None = None) -> str:
    """Return who else decides what the records of a run hold, as the end of a sentence; "" if no one does.

    Args:
        record: The run.
        job: A job of the run, whose records count too. None is no job.

    Raises:
        RunError: The owner of a record cannot be found out.
    """
    if options.team:
        return ""
    for path in _records(record, job):
        with _told(record):
            if reason := others(path):
                return reason
    who = exposed(record.path.resolve().parent)
    return f"can be replaced by {who}" if who else ""


def _records(record: RunRecord, job: JobDir | None) -> Iterator[Path]:
    """Yield the folder of a run, which may be a link to it, and the records that decide what is executed."""
    yield from (record.path, record.path.resolve(), record.folder.manifest)
    inputs = [record.folder.input_run(child.name) for child in entries.children(record.folder.inputs)]
    folders = [record.folder, *inputs]
    for source in [folder.source for folder in folders]:  # copies of tasks' modules, which are imported
        for below, _, names in entries.walk(source):
            yield from (below, *(below / name for name in names))
    yield from (folder.manifest for folder in inputs)
    if job is not None:
        yield from (record.folder.jobs_folder, job.path, job.command, job.handle, job.submitted)


@contextlib.contextmanager
def _told(record: RunRecord) -> Iterator[None]:
    """Pass over a record that does not exist: the folder, which its owner has, is among the others."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as exc:
        raise RunError(f"The owner of {record.id} cannot be found out: {exc}. Make its folder readable.") from exc


def require_trusted_owner(record: RunRecord, *, trust: bool) -> None:
    """Refuse to act on a run of another user, and on one that other users can write or replace.

    Evaluations, films, exports, resumed trainings and previews start the interpreter that the manifest names, import
    the run's own copy of its task, and submit its launcher's lines.

    Args:
        record: The run.
        trust: Whether the user trusts the owner of the run. In a team's folder, everybody is trusted.

    Raises:
        RunError: The run is another user's, or might be, and ``trust`` is False. The message has what would be
            executed.
    """
    reason = "" if trust else decided_by(record)
    if not reason:
        return
    manifest = record.manifest
    settings = ", ".join(f"{name}={value!r}" for name, value in manifest.launcher_settings.items() if value)
    parts = {
        "interpreter": manifest.python,
        "script": " ".join(manifest.script),
        "module": manifest.task.source and str(record.folder.source),
        "task": manifest.task.id,
        "success": manifest.task.success,
        "launcher": f"{manifest.launcher}({settings})",
    }
    lines = "".join(f"\n  {name}: {printable(text)}" for name, text in parts.items() if text)
    raise RunError(
        f"{record.id} {reason}, and its records decide what is executed:{lines}\n"
        "Use trust=True, or --trust in a shell, if you trust all who can write it."
    )


# -- the task of a run -----------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)
_SHOWN_DIGITS = 7


def task_of(record: RunRecord) -> Task:
    """Return the task of a run with the run's copy of its module, because the original may have been edited since.

    A warning names the copies that were edited.
    """
    for text in edited_copies(record):
        logger.warning("%s", text)
    return _with_copy(record)


def edited_copies(record: RunRecord) -> tuple[str, ...]:
    """Return a sentence for each copy of a run's task that is not what the training used. A missing one has none."""
    task, texts = record.manifest.task, []
    for name, digest in {Path(task.source).name: task.source_sha256, **task.files}.items() if task.source else ():
        copy = record.folder.source / name
        with contextlib.suppress(OSError):
            if not has_hash(content := entries.read_bytes(copy), digest):
                hashes = f"its sha256 is {source_hash(content)[:_SHOWN_DIGITS]}, not {(digest or '')[:_SHOWN_DIGITS]}"
                texts.append(f"{copy} was edited after the training: {hashes}.")
    return tuple(texts)


def _with_copy(record: RunRecord) -> Task:
    task = record.manifest.task
    return dataclasses.replace(task, source=str(_copy(record, task.source))) if task.source else task


def trained_task(record: RunRecord, *, trust: bool) -> Task:
    """Return the task of a run, to train it again.

    Raises:
        RunError: The run is another user's and not trusted, is that of a script or of stock Isaac Lab, or has no copy
            of its module or of a file that the module needs.
    """
    require_trusted_owner(record, trust=trust)
    if isinstance(record, StockRecord):
        raise RunError(
            f"{record.path} was written by stock Isaac Lab, so it has no arguments of rlnb to repeat. "
            f"Use rlnb.train({record.task!r}, library={record.library!r})."
        )
    if record.manifest.script:
        raise RunError(f"{record.id} is the run of a script, which has no task. Use rlnb.train(like=run).")
    task = _with_copy(record)
    if task.source:
        names = [Path(task.source).name, *task.files]
        missing = [name for name in names if not files.there(record.folder.source / name)]
        if missing:
            raise RunError(
                f"{record.folder.source} has no copy of {', '.join(missing)}, so {record.id} cannot be repeated. "
                f"Restore it, or train today's version: rlnb.train({task.id!r})."
            )
    return task


def _copy(record: RunRecord, source: str) -> Path:
    return record.folder.source / Path(source).name
