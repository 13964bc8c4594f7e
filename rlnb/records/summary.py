"""What every view of a run shows about it: tables, dashboards, the command line, the panel and reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from rlnb.contracts.libraries import Library
from rlnb.display.table import duration
from rlnb.hooks import plugins
from rlnb.metrics.metrics import NewestValues
from rlnb.records.incidents import Waits
from rlnb.records.notes import Tags, name_of
from rlnb.records.progress import UNKNOWN, Progress, progress_of, remaining_s
from rlnb.records.record import RunRecord
from rlnb.spec import ENDED, Json, State
from rlnb.storage import cache, entries, files
from rlnb.storage.cache import Kept, Stamp, is_settled, stamps_of

T = TypeVar("T")
WAITING: tuple[State, ...] = ("created", "queued", "starting")
"""The states of a run that has not begun to train."""
LONG_S = 60.0
"""Seconds after which the length of a wait is shown."""
MOST_METRICS = 60
"""Most metrics whose last value a summary has."""
MOST_PLACES = 100
"""Most files and folders of a run that are looked at before its summary counts as unchanged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """A run in one row."""

    id: str
    path: Path
    """The run's folder."""
    task: str
    library: str
    state: State
    created: datetime | None = None
    """With a time zone; None if the run's manifest has no valid time."""
    reason: str = ""
    """Why the run waits, stands still, goes on or has ended, in one line; empty for most runs."""
    waits: Waits | None = None
    """Since when it waits or stands still; None if it does not, or if that is unknown."""
    progress: Progress = UNKNOWN
    """Finished iterations and all iterations."""
    eta_s: float | None = None
    """Remaining seconds at the average pace so far; None if that is unknown."""
    reward: float | None = None
    """Last value; None if the run has none."""
    success_rate: float | None = None
    """Last value, 0 to 1; None if the run has none."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last value of each metric that rlnb names, such as ``"fps"``; of a script, of its first tags."""
    name: str = ""
    """The name that the user gave the run; empty without one."""
    tags: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """State, reason, and how long the run waits already, such as ``"queued 12 min: PENDING (Priority)"``.

        The state of a training that stands still, such as ``"running"``, has not lasted as long as that, hence
        ``"running: suspended for 5 min"``.
        """
        if not self.reason:
            return self.state
        minutes_s = self.waits.seconds // LONG_S * LONG_S if self.waits else 0.0
        if not minutes_s:
            return f"{self.state}: {self.reason}"
        length = duration(minutes_s)
        if self.state in WAITING:
            return f"{self.state} {length}: {self.reason}"
        return f"{self.state}: {self.reason} for {length}"

    def row(self) -> dict[str, Json]:
        """Return the columns of a list of runs by name."""
        return {
            "id": self.id,
            "name": self.name,
            "task": self.task,
            "library": self.library,
            "state": self.state,
            "reason": self.reason,
            "iteration": f"{self.progress.finished}/{self.progress.total}" if self.progress.total else "",
            "reward": self.reward,
            "success_rate": self.success_rate,
            "created": self.created.astimezone().strftime("%Y-%m-%d %H:%M") if self.created else "",
            "tags": ", ".join(self.tags),
        }


def summary_of(record: RunRecord, *, metrics: bool = True) -> RunSummary:
    """Return the summary of a run. Values that a damaged record makes unreadable are missing, which is logged.

    Args:
        record: The run.
        metrics: Whether to read its event files, which takes a while if they are long.
    """
    with record.jobs_listed_once():
        return _read(record, metrics)[0]


class _Ended(NamedTuple):
    """The summary of a run that has ended, and what it depends on."""

    summary: RunSummary
    places: Sequence[str]
    """Files and folders that change if the summary does."""
    stamps: tuple[Stamp, ...]


_kept: Kept[_Ended] = Kept()


@cache.collector_paused()
def summaries(records: Sequence[RunRecord]) -> list[RunSummary]:
    """Return the summaries of runs. Those of ended runs, which no file has changed since, are not read again."""
    libraries = tuple(plugins.libraries().values()) if records else ()  # without a run, no plugin is needed
    return [_summary(record, libraries) for record in records]


def _summary(record: RunRecord, libraries: tuple[Library, ...]) -> RunSummary:
    key = os.fspath(record.path)
    kept = _kept.get(key, libraries)
    if kept is not None and stamps_of(kept.places) == kept.stamps:
        return kept.summary
    with record.jobs_listed_once():
        places = _places(record)
        stamps = stamps_of(places)
        summary, is_whole = _read(record)
        job = record.training if is_whole and summary.state in ENDED else None
        result = job.result if job else None
    is_over = result is not None and not result.interrupted
    if is_over and len(places) <= MOST_PLACES and is_settled(stamps):  # a change since then has other stamps
        _kept.put(key, libraries, _Ended(summary, places, stamps))
    return summary


def _read(record: RunRecord, metrics: bool = True) -> tuple[RunSummary, bool]:
    """Return the summary of a run, and whether it is whole."""
    state, faults = record.state, list[Exception]()

    def read(part: Callable[[], T], missing: T) -> T:
        try:
            return part()
        except Exception as exc:  # no part of a damaged run may hide the others
            faults.append(exc)
            files.warn_once(f"{record.path}: {exc}")
            return missing

    newest = read(lambda: record.newest(state) if metrics else None, None)
    progress = read(lambda: progress_of(record, newest), UNKNOWN)
    summary = RunSummary(
        id=record.id,
        path=record.path,
        task=record.task,
        library=record.library,
        state=state,
        created=read(lambda: record.created, None),
        reason=read(lambda: record.reason_of(state), ""),
        waits=read(lambda: record.training.waits if record.training and state not in ENDED else None, None),
        progress=progress,
        eta_s=read(lambda: remaining_s(record, state, progress) if metrics else None, None),
        reward=read(lambda: _last(newest, "reward"), None),
        success_rate=read(lambda: _last(newest, "success_rate"), None),
        metrics=read(lambda: {name: newest.last(name) for name in newest.names[:MOST_METRICS]} if newest else {}, {}),
        name=read(lambda: name_of(record.folder.notes, record.manifest.name), ""),
        tags=read(lambda: tuple(Tags(record.folder.notes, record.manifest.tags)), ()),
    )
    return summary, not faults


def _last(newest: NewestValues | None, name: str) -> float | None:
    return newest.last(name) if newest is not None and name in newest.names else None


def _places(record: RunRecord) -> list[str]:
    """Return the files and folders on which the summary of an ended run depends."""
    folder = record.folder
    places = [folder.manifest, folder.notes, folder.jobs_folder]
    for job in record.jobs:
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
