"""Finding runs on disk: rlnb's own, and those of stock Isaac Lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlnb.errors import RlnbError
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


def find(path: Path) -> Iterator[RunRecord]:
    """Yield every run below ``path``: rlnb's own and stock Isaac Lab's; folders that are neither are passed over.

    Args:
        path: An rlnb root, a folder of runs, a single run, or a stock ``logs/`` folder.
    """
    if RunDir(path).manifest.exists():
        yield open_record(path)
        return
    for folder in (path / "runs", path):
        if folder.is_dir():
            for child in sorted(folder.iterdir()):
                if RunDir(child).manifest.exists():
                    yield open_record(child)
    for params in sorted(path.glob("**/params/agent.yaml")):
        run = params.parent.parent
        ours = any(RunDir(folder).manifest.exists() for folder in run.parents if folder.is_relative_to(path))
        if not ours and (run / "params" / "env.yaml").exists():
            yield StockRecord(run)
