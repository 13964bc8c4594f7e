"""Find runs on disk: rlnb's own, and those of stock Isaac Lab."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import NotFoundError, RlnbError, unknown
from rlnb.records.layout import RunDir
from rlnb.records.notes import name_of
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import ScriptRecord, StockRecord, is_stock
from rlnb.settings import Root
from rlnb.storage import entries, files
from rlnb.storage.entries import walk


def open_record(path: Path) -> RunRecord:
    """Return the record of a run that rlnb made. The record of a damaged run raises an error when it is read."""
    record = RunRecord(path)
    try:
        return ScriptRecord(path) if record.manifest.script else record
    except RlnbError:
        return record


def _is_run(folder: Path) -> bool:
    """Return whether a folder is a run; an unreadable folder below ``runs`` counts, and its record raises the cause."""
    try:
        return RunDir(folder).manifest.exists()
    except OSError:
        return folder.parent.name == "runs"


def find(path: Path) -> Iterator[RunRecord]:
    """Yield every run below ``path``: rlnb's own and stock Isaac Lab's; all other folders are skipped.

    Args:
        path: An rlnb root, a folder of runs, a single run, or a stock ``logs/`` folder.
    """
    if _is_run(path):
        yield open_record(path)
        return
    known: set[str] = set()
    for folder in (path / "runs", path):
        if folder.is_dir():
            for child in sorted(entries.children(folder), key=os.fspath):
                if not child.name.startswith(".") and _is_run(child):
                    known.add(os.fspath(child))
                    yield open_record(child)
    for run, below, own_files in walk(path):
        children = [child for child in below if not child.startswith(".")]
        children = [child for child in children if os.path.join(run, child) not in known]
        below[:] = sorted(child for child in children if not _is_run(run / child))
        if ("params" in below or "run.json" in own_files) and is_stock(run):
            yield StockRecord(run)


def run_of(path: Path) -> RunRecord | None:
    """Return the run whose folder is ``path`` or contains it; None if there is none."""
    return next((open_record(folder) for folder in (path, *path.parents) if RunDir(folder).manifest.exists()), None)


def _name(record: RunRecord) -> str:
    """Return the name of a run; that of a damaged one is empty."""
    try:
        return name_of(record.folder.notes, record.manifest.name)
    except RlnbError:
        return ""


def _moved(root: Root, folder: Path) -> Path:
    """Return where the folder of a run lies now, if it was moved to one of the places that are searched."""
    cwd = Path.cwd()
    places = [*([cwd] if cwd.name == folder.name else []), cwd / folder.name, root.runs / folder.name]
    return next((path for path in places if files.there(path)), folder)


def find_one(root: Root, id: str) -> RunRecord:
    """Return a run by its id, by a unique part of its id, by its name, or by its folder.

    A folder that is not there any more may have been moved: into the working folder, into the folder of runs, or it is
    the working folder itself.

    Raises:
        NotFoundError: No run matches, or several do.
    """
    folder = Path(id).absolute()
    if not files.there(folder) and folder.name and id != folder.name:
        folder = _moved(root, folder)
    if files.there(folder) and (record := next((record for record in find(folder) if record.path == folder), None)):
        return record
    records = {record.id: record for record in find(root.path)}
    matches = [name for name in records if id in name]
    if id in records or len(matches) == 1:
        return records[id if id in records else matches[0]]
    if matches:
        names = ", ".join(sorted(matches)[-5:])
        raise NotFoundError(f"{id!r} matches {len(matches)} runs: {names}. Use a longer part of the id.")
    named = [record for record in records.values() if id == _name(record)]
    if len(named) == 1:
        return named[0]
    if named:
        raise NotFoundError(f"{id!r} is the name of {len(named)} runs: {', '.join(one.id for one in named[-5:])}.")
    raise unknown("run", id, list(records)[-10:], has=f"Newest in {root.runs}")
