"""Finding runs on disk: rlnb's own, and those of stock Isaac Lab."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records import files
from rlnb.records.layout import RunDir
from rlnb.records.record import RunRecord, StockRecord
from rlnb.records.script import ScriptRecord


def open_record(path: Path) -> RunRecord:
    """Return the record of a run that rlnb made; a damaged one too, which says what is wrong when it is read."""
    record = RunRecord(path)
    try:
        return ScriptRecord(path) if record.manifest.script else record
    except RlnbError:
        return record


def _is_run(folder: Path) -> bool:
    """Return whether a folder is a run; below ``runs`` one that cannot be looked into is, and its record says why."""
    try:
        return RunDir(folder).manifest.exists()
    except OSError:
        return folder.parent.name == "runs"


def find(path: Path) -> Iterator[RunRecord]:
    """Yield every run below ``path``: rlnb's own and stock Isaac Lab's; folders that are neither are passed over.

    Args:
        path: An rlnb root, a folder of runs, a single run, or a stock ``logs/`` folder.
    """
    if _is_run(path):
        yield open_record(path)
        return
    for folder in (path / "runs", path):
        if folder.is_dir():
            for child in sorted(folder.iterdir()):
                if not child.name.startswith(".") and _is_run(child):
                    yield open_record(child)
    for name, below, _ in os.walk(path):
        run = Path(name)
        shown = [child for child in below if not child.startswith(".")]
        below[:] = sorted(child for child in shown if not _is_run(run / child))
        if "params" in below and all(files.there(run / "params" / name) for name in ("agent.yaml", "env.yaml")):
            yield StockRecord(run)
