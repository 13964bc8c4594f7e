"""An index of the runs below some folders, which is kept up to date at little cost for lists in front ends."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rlnb.hooks import plugins
from rlnb.records import notes
from rlnb.records.find import find
from rlnb.records.layout import RunDir
from rlnb.run.run import Run
from rlnb.simulation.remote_job import SimulatorRecord, simulator_records
from rlnb.spec import ENDED
from rlnb.storage.entries import scanned
from rlnb.storage.files import warn_once

ENDED_AT_ONCE = 300
"""Ended runs to check per refresh: they rarely change, only when they are resumed, tagged or annotated."""
THREADS = 32
"""Records to read at the same time. A shared file system answers each call after milliseconds, but many at once."""
WALK_EVERY = 30
"""Refreshes between two walks through folders that are not rlnb roots, since stock Isaac Lab nests its runs. Runs that
could not be read are tried again then, since a file system that was away may have been the cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """The difference between two refreshes."""

    updates: tuple[Run, ...]
    """Runs to redraw: new ones, changed ones, and every one that has not ended."""
    departures: tuple[Run, ...]
    """Runs that were deleted, archived or damaged since the last refresh."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """The records of a run at one moment."""

    path: str
    run: Run
    stamp: tuple[int, ...]
    archived: bool = False
    ended: bool = False
    lost: bool = False
    error: Exception | None = None


class RunIndex:
    """An index of the runs below some folders, except archived ones.

    The records of a run are read when it first appears. From then on, a refresh checks every unfinished run and, in
    turn, some of the ended ones. A lost run goes on once its heartbeat does, as after a file system was away. Not
    thread-safe.

    Args:
        roots: rlnb roots, or folders of stock Isaac Lab ``logs/``.
    """

    def __init__(self, roots: Sequence[str | Path]) -> None:
        self._roots = [Path(root).absolute() for root in roots]
        self._runs: dict[str, Run] = {}
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._shown: set[str] = set()
        self._live: set[str] = set()
        self._stock: dict[str, Run] = {}
        self._damaged: set[str] = set()
        self._lost: set[str] = set()
        self._turn = self._looks = 0
        self.behind = 0
        """Number of runs that the last refresh found but had no time to read."""

    @property
    def runs(self) -> Sequence[Run]:
        """The runs as of the last refresh, newest first."""
        return sorted((self._runs[path] for path in self._shown), key=lambda run: run.manifest.created, reverse=True)

    def simulators(self) -> Sequence[SimulatorRecord]:
        """Return the warm simulators in jobs of this user's kernels on this machine."""
        return [one for root in self._roots for one in simulator_records(root)]

    def refresh(self, limit_s: float = math.inf) -> Changes:
        """Read the folders again and return the changes.

        Args:
            limit_s: Seconds after which the remaining new runs are left for the next refresh; the newest come first.
        """
        if self._looks % WALK_EVERY == 0:
            self._damaged.clear()
        folders = self._run_folders()
        deadline = time.monotonic() + limit_s
        departures = [path for path in self._runs if path not in folders]
        with ThreadPoolExecutor(THREADS) as pool:
            new = self._open(sorted(folders - self._runs.keys() - self._damaged, reverse=True), deadline, pool)
            ended = self._ended_in_turn(folders)
            stamps = zip(ended, pool.map(self._stamp, ended), strict=True)
            changes = [path for path, stamp in stamps if stamp != self._stamps[path]]
            looks = [*new, *pool.map(self._look, dict.fromkeys((*(self._live - set(departures)), *changes)))]
        updates = []
        for look in looks:
            path = look.path
            self._runs[path], self._stamps[path] = look.run, look.stamp
            if look.error is not None:  # no error of a damaged record may hide the other runs
                warn_once(f"{path}: {look.error}")
                self._damaged.add(path)
                departures.append(path)
                continue
            (self._lost.add if look.lost else self._lost.discard)(path)
            if look.archived:
                departures += [path] if path in self._shown else []
                continue
            if look.ended and path in self._live and path not in self._stock:
                self._runs[path] = Run(Path(path))  # a new Run, to free the curves cached in the old one
            updates.append(self._runs[path])
            self._shown.add(path)
            (self._live.discard if look.ended else self._live.add)(path)
        losses = tuple(self._runs[path] for path in departures if path in self._shown)
        for path in departures:
            self._shown.discard(path)
            self._live.discard(path)
            if path not in folders or path in self._damaged:
                del self._runs[path], self._stamps[path]
                self._lost.discard(path)
        return Changes(updates=tuple(updates), departures=losses)

    def _run_folders(self) -> set[str]:
        """Return every folder that may be a run. Whether it is one shows when its records are read."""
        folders: set[str] = set()
        for root in self._roots:
            folders.update(_folders(root / "runs"))
            if (root / "runs").is_dir():  # the other folders of a root hold tasks, cards and sweeps
                folders.update(path for path in _folders(root) if path in self._runs or self._is_run(path))
                continue
            folders.update(_folders(root))
            if self._looks % WALK_EVERY == 0:
                self._stock |= {str(record.path): Run.of(record) for record in find(root)}
        self._looks += 1
        return folders | {path for path in self._stock if os.path.exists(path)}

    def _open(self, paths: Sequence[str], deadline: float, pool: ThreadPoolExecutor) -> list[_Look]:
        """Read the records of new runs until a deadline, the first ones first."""
        plugins.launchers()  # once, before several threads need them
        looks: list[_Look] = []
        done = 0
        while done < len(paths) and time.monotonic() <= deadline:
            batch = paths[done : done + 2 * THREADS]
            runs = [path for path, is_run in zip(batch, pool.map(self._is_run, batch), strict=True) if is_run]
            looks += pool.map(self._look, runs)
            done += len(batch)
        self.behind = len(paths) - done
        return looks

    def _is_run(self, path: str) -> bool:
        return path in self._stock or os.path.exists(RunDir(Path(path)).manifest)

    def _look(self, path: str) -> _Look:
        """Read the records of a run that say whether it belongs to the list, and whether it can change."""
        run, stamp = self._stock.get(path) or self._runs.get(path) or Run(Path(path)), _stamp(path)
        try:
            _ = run.manifest, run.created
            archived, state = notes.archived(RunDir(Path(path)).notes), run.state
        except Exception as exc:  # a damaged record can raise anything
            return _Look(path=path, run=run, stamp=stamp, error=exc)
        lost = state == "lost"
        stamp = (*stamp, *_beats(path)) if lost else stamp
        return _Look(path=path, run=run, stamp=stamp, archived=archived, ended=state in ENDED, lost=lost)

    def _stamp(self, path: str) -> tuple[int, ...]:
        return (*_stamp(path), *_beats(path)) if path in self._lost else _stamp(path)

    def _ended_in_turn(self, folders: Container[str]) -> list[str]:
        ended = [path for path in self._runs if path not in self._live and path in folders]
        begin = self._turn if self._turn < len(ended) else 0
        self._turn = begin + ENDED_AT_ONCE
        return ended[begin : self._turn]


def _folders(folder: Path) -> list[str]:
    try:
        with scanned(folder) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".") and _is_folder(entry)]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of symbolic links
        return False


def _stamp(path: str) -> tuple[int, ...]:
    """Return modification times that change when an ended run gets a new job, note or tag."""
    run = RunDir(Path(path))
    return tuple(_changed_ns(folder) for folder in (run.notes, run.jobs_folder))


def _beats(path: str) -> tuple[int, ...]:
    """Return modification times that change as long as a process of a run's newest training lives."""
    try:
        training = next((job for job in reversed(RunDir(Path(path)).jobs()) if job.kind == "train"), None)
        return tuple(map(_changed_ns, sorted(training.beats()))) if training else ()
    except OSError:
        return ()


def _changed_ns(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
