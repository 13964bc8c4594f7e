"""The owner of a run. Its records name programs and modules, so a user who acts on a run trusts its owner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import RunError
from rlnb.records.layout import JobDir
from rlnb.records.record import RunRecord
from rlnb.settings import options
from rlnb.storage import entries
from rlnb.storage.access import another_owner, exposed, others, printable


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
