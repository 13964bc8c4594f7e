"""A row of a list of runs, and the rows of ended runs, which stay as they are."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.run.run import Run
from rlnb.spec import ENDED
from rlnb.storage import cache, entries
from rlnb.storage.cache import Kept, Stamp, is_settled, stamps_of

logger = logging.getLogger(__name__)

MOST_PLACES = 100
"""Most files and folders of a run that are looked at before its row counts as unchanged."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """One row of a list of runs."""

    id: str
    task: str
    library: str
    state: str
    reason: str = ""
    """Why the run waits, goes on or has ended; empty for most."""
    iteration: str = ""
    reward: float | None = None
    success_rate: float | None = None
    created: str
    tags: str = ""


class _Ended(NamedTuple):
    """The row of a run that has ended, and what it depends on."""

    row: RunRow
    places: Sequence[str]
    """Files and folders that change if the row does."""
    stamps: tuple[Stamp, ...]


_kept: Kept[_Ended] = Kept()


@cache.collector_paused()
def rows_of(runs: Sequence[Run]) -> list[RunRow]:
    """Return the rows of runs. Those of ended runs, which no file has changed since, are not read again."""
    libraries = tuple(plugins.libraries().values())
    return [_row(run, libraries) for run in runs]


def _row(run: Run, libraries: tuple[Library, ...]) -> RunRow:
    key = os.fspath(run.path)
    kept = _kept.get(key, libraries)
    if kept is not None and stamps_of(kept.places) == kept.stamps:
        return kept.row
    with run.record.jobs_listed_once():
        places = _places(run)
        stamps = stamps_of(places)
        row, is_whole = _read(run)
        result = run.result if is_whole and row.state in ENDED and row.state != "lost" else None
    is_over = result is not None and not result.interrupted
    if is_over and len(places) <= MOST_PLACES and is_settled(stamps):  # a change since then has other stamps
        _kept.put(key, libraries, _Ended(row, places, stamps))
    return row


def _read(run: Run) -> tuple[RunRow, bool]:
    """Return the row of a run, and whether it is whole. Values that a damaged record makes unreadable are empty."""
    created, state = run.created.astimezone().strftime("%Y-%m-%d %H:%M"), run.state
    row = RunRow(id=run.id, task=run.task, library=run.library, state=state, created=created)
    try:
        metrics = run.record.newest(state)
        (done, total), names = run.progress_by(metrics), {*metrics.names}
        whole = dataclasses.replace(
            row,
            reason=run.record.reason_of(state),
            iteration=f"{done}/{total}" if total else "",
            reward=metrics.last("reward") if "reward" in names else None,
            success_rate=metrics.last("success_rate") if "success_rate" in names else None,
            tags=", ".join(run.tags),
        )
        return whole, True
    except Exception as exc:
        logger.warning("%s: %s", run.path, exc)
        return row, False


def _places(run: Run) -> list[str]:
    """Return the files and folders on which the row of an ended run depends."""
    folder = run.record.folder
    places = [folder.manifest, folder.notes, folder.jobs_folder]
    for job in run.jobs:
        places += [job.folder.path, job.folder.job, job.folder.started, job.folder.result]
    return [*map(os.fspath, places), *_event_places(os.fspath(folder.logs), os.fspath(folder.system))]


def _event_places(logs: str, system: str) -> list[str]:
    """Return the event files below the logs, and the folders that may get further ones; not many more than are kept."""
    places: list[str] = []
    waiting = [logs]
    while waiting and len(places) <= MOST_PLACES:
        place = waiting.pop()
        places.append(place)
        try:
            with entries.scanned(Path(place)) as found:
                for entry in found:
                    path = os.path.join(place, entry.name)
                    if "tfevents" in entry.name:
                        places.append(path)
                    elif entry.is_dir(follow_symlinks=False) and path != system:
                        waiting.append(path)
        except OSError:
            continue
    return places
