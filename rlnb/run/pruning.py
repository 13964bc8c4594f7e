"""Free disk space: list the deletable files of old runs, then delete them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from rlnb.errors import RlnbError, RunError
from rlnb.records.find import open_record, run_of
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import StockRecord
from rlnb.records.trust import may_be_foreign
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import ENDED
from rlnb.storage import entries, temporary
from rlnb.storage.clock import age_s, now_s
from rlnb.storage.entries import files_below

logger = logging.getLogger(__name__)

_REMOVED = re.compile(r"\..+\.[0-9a-f]{8}\.removed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning:
    """Checkpoints or runs to delete; :meth:`apply` deletes them."""

    items: tuple[tuple[str, Path, int], ...]
    """Run id, path (a checkpoint, or the folder of a whole run) and size in bytes."""
    unfinished: int
    """Number of runs that were skipped because they have not ended or cannot be read."""
    anothers: int = 0
    """Number of runs that were skipped because they belong to other users."""
    done: bool = False
    """Whether the items were deleted."""

    @property
    def size(self) -> int:
        """Total size of the items in bytes."""
        return sum(size for _, _, size in self.items)

    def apply(self) -> Pruning:
        """Delete all items and return them. Leftovers of killed processes are removed too.

        Raises:
            RlnbError: Some items could not be deleted, or their run is active again; all others were deleted.
        """
        remove_leftovers(options.folders.runs)
        failed = []
        records = {id: run_of(path) for id, path, _ in self.items}
        busy = {id for id, record in records.items() if record and not idle(record)}
        failed += [f"{id}: is active again and was kept" for id in sorted(busy)]
        theirs = {id for id, record in records.items() if record and may_be_foreign(record)}
        failed += [f"{id}: belongs to another user and was kept" for id in sorted(theirs - busy)]
        for id, path, _ in self.items:
            if id in busy | theirs:
                continue
            try:
                if path.name == id:
                    _remove(path)
                elif record := records[id]:
                    record.checkpoints.delete(path)
            except OSError as exc:
                failed.append(f"{path}: {exc.strerror or exc}")
            except RunError as exc:
                failed.append(str(exc))
        if failed:
            raise RlnbError("Some items could not be removed:\n  " + "\n  ".join(failed))
        return dataclasses.replace(self, done=True)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the run, path and size of each item, as text."""
        return [
            (id, "the whole run" if path.name == id else _below(id, path), in_words(size))
            for id, path, size in self.items
        ]

    def __repr__(self) -> str:
        what = "removed" if self.done else ".apply() removes them"
        theirs = f"; {self.anothers} runs of other users are kept" if self.anothers else ""
        return f"Pruning({len(self.items)} items, {in_words(self.size)}; {what}{theirs})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        what = "freed" if self.done else "to be freed by .apply()"
        return table(["run", "what", "size"], self.rows(), caption=f"{in_words(self.size)} {what}")


def prune(runs: Iterable[Run], *, keep: int = 1, whole: bool = False) -> Pruning:
    """Return the files of the ended runs that can be deleted.

    Args:
        runs: Runs. Unfinished ones, those of stock Isaac Lab and those of other users are skipped.
        keep: Number of newest checkpoints to keep per run, in addition to the best by reward.
        whole: Whether to delete whole runs, including their records.
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        fix = "Use keep=1, or whole=True (in a shell --whole) to delete whole runs."
        raise RlnbError(f"keep={keep!r} is not a positive whole number. {fix}")
    items, unfinished, anothers = [], 0, 0
    for run in runs:
        if isinstance(run.record, StockRecord):
            continue
        if may_be_foreign(run.record):
            anothers += 1
            continue
        if not idle(run.record):
            unfinished += 1
            continue
        try:
            if whole:
                items.append((run.id, run.path, _size(run.path)))
            else:
                checkpoints = run.checkpoints
                items += [(run.id, path, checkpoints.size(path)) for path in checkpoints.spare(keep, abandoned=True)]
        except Exception as exc:  # no error of a damaged record may hide the other runs
            logger.warning("%s is skipped. %s", run.path, exc)
            unfinished += 1
    return Pruning(items=tuple(items), unfinished=unfinished, anothers=anothers)


def idle(record: RunRecord) -> bool:
    """Return whether no job of a run is active, neither training nor evaluation; False if that is unreadable."""
    try:
        record.folder.jobs()  # raises if unreadable, when record.jobs would be empty
        unfinished = any(job.folder.command.exists() and job.state() not in ENDED for job in record.jobs)
        return record.state in ENDED and not unfinished
    except OSError:
        return False


def _remove(path: Path) -> None:
    """Remove a run after renaming its folder.

    An agent that is about to exit may still write below the old name, so that the folder could not be removed. And
    without the new name, a half-removed run could be listed as a run of stock Isaac Lab.
    """
    if not path.is_dir():
        return
    if path.is_symlink():
        raise OSError(f"is a link to {path.readlink()}. Remove it yourself")
    time_s = now_s(path.parent)
    for remnant in entries.children(path.parent):  # left by an earlier call, because NFS keeps open files
        if _REMOVED.fullmatch(remnant.name) and time_s - remnant.lstat().st_ctime > LEFT_S:
            entries.remove_tree(remnant, ignore_errors=True)
    trash = entries.rename(path, f".{path.name}.{secrets.token_hex(4)}.removed")
    # A job that was added before the rename is in the folder now; one that comes later finds no folder.
    if not idle(open_record(trash)):
        entries.rename(trash, path.name)
        raise RunError(f"{path.name}: is active again and was kept")
    try:
        entries.remove_tree(trash)
    except OSError as exc:
        raise OSError(f"{exc.filename}: {exc.strerror or exc}. The remaining files are in {trash}") from exc


def _below(id: str, path: Path) -> str:
    """Return the path of a checkpoint below the folder of its run."""
    parts = path.parts
    return Path(*parts[parts.index(id) + 1 :]).as_posix() if id in parts else str(path)


def _size(path: Path) -> int:
    """Return the size of the files below a folder, in bytes."""
    size = 0
    for file in files_below(path):
        with contextlib.suppress(FileNotFoundError):  # an exiting agent still removes files
            size += file.lstat().st_size
    return size


def in_words(size: int) -> str:
    """Return a size in bytes as text with a unit."""
    from rich.filesize import decimal

    return decimal(size)


# -- leftovers -------------------------------------------------------------------------------------------------------


LEFT_S = 3600.0
"""Seconds after which a folder is taken to be left over. A draft becomes a run within seconds."""
_DRAFT = re.compile(r"\.\d{8}-\d{6}-.+")
"""Name of a draft of a run; see :func:`rlnb.training.create.create_run`."""
_TEMPORARY = re.compile(r"rlnb-(warm|tensorboard)-\w{8}")
"""Names of temporary folders that the processes that use them have in their arguments."""


def remove_leftovers(runs: Path) -> None:
    """Remove this user's leftovers that no living process uses.

    Args:
        runs: Folder of runs, whose drafts are removed.
    """
    leftovers = [*_old(runs, _DRAFT)]
    with contextlib.suppress(OSError):  # no folder for temporary files can be written
        leftovers += _unused(_old(Path(tempfile.gettempdir()), _TEMPORARY))
    for folder in leftovers:
        entries.remove_tree(folder, ignore_errors=True)
    temporary.tidy()


def _old(parent: Path, names: re.Pattern[str]) -> Iterator[Path]:
    """Yield this user's folders in a folder that have such a name and in which nothing has changed for an hour."""
    try:
        children = [child for child in entries.children(parent) if names.fullmatch(child.name)]
    except OSError:
        return
    for child in children:
        try:
            found = child.lstat()
            own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if own and min(map(age_s, (child, *entries.children(child)))) > LEFT_S:
                yield child
        except OSError:
            continue


def _unused(folders: Iterator[Path]) -> Iterator[Path]:
    """Yield the folders that no process of this machine names in its arguments."""
    processes = " ".join(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    yield from (folder for folder in folders if str(folder) not in processes)
