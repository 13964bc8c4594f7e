"""The owner of a run. Its records name programs and modules, so a user who acts on a run trusts its owner."""

from __future__ import annotations

import os
import sys
import tempfile

from rlnb.errors import RunError
from rlnb.records.record import RunRecord


def refuse_another_users(record: RunRecord, *, trust: bool) -> None:
    """Refuse to act on a run of another user.

    Evaluations, films, exports, resumed trainings and previews start the interpreter that the manifest names, import
    the run's own copy of its task, and submit its launcher's lines.

    Args:
        record: The run.
        trust: Whether the user trusts the owner of the run.

    Raises:
        RunError: The run belongs to another user, and ``trust`` is False. The message has what would be executed.
    """
    try:
        owner = os.lstat(record.folder.manifest).st_uid
    except OSError:  # the run was deleted, and a job cannot be added to it
        return
    if trust or sys.platform == "win32" or owner in (os.getuid(), _uid_here(record)):
        return
    manifest = record.manifest
    settings = ", ".join(f"{name}={value!r}" for name, value in manifest.launcher_settings.items() if value)
    parts = {
        "interpreter": manifest.python,
        "script": " ".join(manifest.script),
        "module": manifest.task.source and str(record.folder.source),
        "launcher": f"{manifest.launcher}({settings})",
    }
    lines = "".join(f"\n  {name}: {text}" for name, text in parts.items() if text)
    raise RunError(
        f"{record.id} belongs to the user {owner}, and its records decide what is executed:{lines}\n"
        "Use trust=True if you trust that user."
    )


def _uid_here(record: RunRecord) -> int:
    """Return the owner of a new file beside the run; a share may map all users to one."""
    try:
        with tempfile.TemporaryFile(dir=record.path.parent) as file:
            return os.fstat(file.fileno()).st_uid
    except OSError:  # not writable by this user
        return os.getuid()
