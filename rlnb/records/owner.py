"""The owner of a run. Its records name programs and modules, so a user who acts on a run trusts its owner."""

from __future__ import annotations

import os

from rlnb.errors import RunError
from rlnb.records.layout import JobDir
from rlnb.records.record import RunRecord
from rlnb.settings import options
from rlnb.storage.owner import another_owner, others, printable, replacers


def another_users(record: RunRecord, job: JobDir | None = None) -> int | None:
    """Return the user id of the owner of a run; None if that is this user, or if the run was deleted.

    The owner of the manifest counts, and that of the run's folder, who can replace the manifest.

    Args:
        record: The run.
        job: A job of the run, whose folder and records count too: a team may share the run's folder. None is no job.
    """
    try:
        folder = record.path.resolve()
        paths = [record.folder.manifest, folder]
        if job is not None:
            records = (job.command, job.handle, job.submitted)
            paths += [record.folder.jobs_folder, job.path, *filter(os.path.lexists, records)]
        owners = [another_owner(path, folder.parent) for path in paths]
    except OSError:
        return None
    return next((owner for owner in owners if owner is not None), None)


def is_anothers(record: RunRecord) -> bool:
    """Return whether a run belongs to another user, in a folder of runs that is no team's."""
    return not options.team and another_users(record) is not None


def refuse_another_users(record: RunRecord, *, trust: bool) -> None:
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
    reason = "" if trust or options.team else _reason(record)
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


def _reason(record: RunRecord) -> str:
    """Return why a run may be another user's, as the end of a sentence; "" if it cannot, or if it was deleted."""
    try:
        folder = record.path.resolve()
        reasons = (*map(others, (record.folder.manifest, folder)),)
        if who := replacers(folder.parent):
            return next(filter(None, reasons), f"can be replaced by {who}")
    except OSError:  # a job cannot be added to a run that was deleted
        return ""
    return next(filter(None, reasons), "")
