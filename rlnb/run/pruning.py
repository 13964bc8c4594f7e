"""Making room: what of old runs can go, shown before it goes."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.find import run_of
from rlnb.records.record import RunRecord, StockRecord
from rlnb.run.run import Run
from rlnb.spec import ENDED

logger = logging.getLogger(__name__)

LEFT_S = 3600.0
"""Seconds after which a folder that was to be removed is nobody's work any more."""
_REMOVED = re.compile(r"\..+\.[0-9a-f]{8}\.removed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning:
    """Checkpoints or runs that would go; nothing is gone before :meth:`apply`."""

    items: tuple[tuple[str, Path, int], ...]
    """Run id, path (a checkpoint, or the folder of a whole run) and size in bytes."""
    unfinished: int
    """Runs that were passed over since they have not ended, as far as can be read."""
    done: bool = False
    """Whether it was done."""

    @property
    def size(self) -> int:
        """Bytes that would be free."""
        return sum(size for _, _, size in self.items)

    def apply(self) -> Pruning:
        """Remove it all, and return what was; what cannot be removed is named in the end.

        Raises:
            RlnbError: Something could not be removed, or a run goes on again; the rest is gone.
        """
        failed = []
        records = {id: run_of(path) for id, path, _ in self.items}
        busy = {id for id, record in records.items() if record and not idle(record)}
        failed += [f"{id}: goes on again, it is left alone" for id in sorted(busy)]
        for id, path, _ in self.items:
            if id in busy:
                continue
            try:
                _remove(path)
            except OSError as exc:
                failed.append(f"{path}: {exc.strerror or exc}")
        if failed:
            raise RlnbError("Not everything could be removed:\n  " + "\n  ".join(failed))
        return dataclasses.replace(self, done=True)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return run, path and size, as text."""
        return [
            (id, "the whole run" if path.name == id else path.name, in_words(size)) for id, path, size in self.items
        ]

    def __repr__(self) -> str:
        what = "removed" if self.done else ".apply() removes them"
        return f"Pruning({len(self.items)} items, {in_words(self.size)}; {what})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        what = "freed" if self.done else "to be freed by .apply()"
        return table(["run", "what", "size"], self.rows(), caption=f"{in_words(self.size)} {what}")


def prune(runs: Iterable[Run], *, keep: int = 1, whole: bool = False) -> Pruning:
    """Return what can go of the runs among these that have ended.

    Args:
        runs: Runs; those that have not ended and those of stock Isaac Lab are left alone.
        keep: Checkpoints that stay of each run, the newest, beside the best by reward.
        whole: Whether the runs go whole, records and all.
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise RlnbError(f"keep={keep!r} is not a positive whole number. To remove whole runs: whole=True, or --whole")
    items, unfinished = [], 0
    for run in runs:
        if isinstance(run.record, StockRecord):
            continue
        if not idle(run.record):
            unfinished += 1
            continue
        try:
            items += [(run.id, path, _size(path)) for path in ([run.path] if whole else run.checkpoints.spare(keep))]
        except Exception as exc:  # whatever an odd record brings about must not hide the other runs
            logger.warning("%s is left alone. %s", run.path, exc)
            unfinished += 1
    return Pruning(items=tuple(items), unfinished=unfinished)


def idle(record: RunRecord) -> bool:
    """Return whether nothing of a run goes on, neither its training nor an evaluation, as far as that can be read."""
    try:
        record.folder.jobs()  # raises where another user's jobs cannot be listed: in record.jobs there are none then
        unfinished = any(job.folder.command.exists() and job.state() not in ENDED for job in record.jobs)
        return record.state in ENDED and not unfinished
    except OSError:
        return False


def _remove(path: Path) -> None:
    """Remove a checkpoint, or a run, whose folder is moved away first.

    An agent that is about to leave still writes below the old name, which would keep the folder from being empty;
    and half a run must not be listed as something that stock Isaac Lab wrote.
    """
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if path.is_symlink():
        raise OSError(f"is a link to {path.readlink()}, which is left alone")
    for remnant in path.parent.iterdir():  # of an earlier call, where a shared file system kept open files
        if _REMOVED.fullmatch(remnant.name) and time.time() - remnant.lstat().st_ctime > LEFT_S:
            shutil.rmtree(remnant, ignore_errors=True)
    trash = path.rename(path.with_name(f".{path.name}.{secrets.token_hex(4)}.removed"))
    try:
        shutil.rmtree(trash)
    except OSError as exc:
        raise OSError(f"{exc.filename}: {exc.strerror}. The rest of it lies in {trash}") from exc


def _size(path: Path) -> int:
    size = 0
    for file in [path] if path.is_file() else path.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # an agent that leaves still writes and removes
            size += file.lstat().st_size if file.is_file() else 0
    return size


def in_words(size: int) -> str:
    """Return a size as people read it."""
    from rich.filesize import decimal

    return decimal(size)
