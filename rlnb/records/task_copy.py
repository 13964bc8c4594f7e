"""The task of a run, with the run's own copy of its module: the original may have been edited since."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from pathlib import Path

from rlnb.errors import RunError
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import StockRecord
from rlnb.records.trust import require_trusted_owner
from rlnb.spec import Task
from rlnb.storage import entries, files
from rlnb.storage.files import has_hash, source_hash

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
