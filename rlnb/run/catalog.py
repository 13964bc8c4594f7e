"""The runs below some folders, kept up to date at little cost, for lists that are refreshed all the time."""

from __future__ import annotations

import itertools
import logging
import math
import os
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.records import notes
from rlnb.records.find import find
from rlnb.records.layout import RunDir
from rlnb.run.run import Run
from rlnb.spec import ENDED

logger = logging.getLogger(__name__)

ENDED_AT_ONCE = 300
"""Ended runs to check per refresh: they rarely change, only when they are resumed, tagged or annotated."""
WALK_EVERY = 30
"""Refreshes between two walks through folders that are not rlnb roots, since stock Isaac Lab nests its runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """The difference between two refreshes."""

    updates: tuple[Run, ...]
    """Runs to redraw: new ones, changed ones, and every one that has not ended."""
    departures: tuple[Run, ...]
    """Runs that were deleted, archived or damaged since the last refresh."""


class Catalog:
    """The runs below some folders, except archived ones.

    The records of a run are read when it first appears. From then on, a refresh checks every unfinished run and, in
    turn, some of the ended ones. Not thread-safe.

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
        self._turn = self._looks = 0
        self.behind = 0
        """Number of runs that the last refresh found but had no time to read."""

    @property
    def runs(self) -> Sequence[Run]:
        """The runs as of the last refresh, newest first."""
        return sorted((self._runs[path] for path in self._shown), key=lambda run: run.manifest.created, reverse=True)

    def refresh(self, limit_s: float = math.inf) -> Changes:
        """Read the folders again and return the changes.

        Args:
            limit_s: Seconds after which the remaining new runs are left for the next refresh; the newest come first.
        """
        folders = self._run_folders()
        deadline = time.monotonic() + limit_s
        departures = [path for path in self._runs if path not in folders]
        unseen = sorted(folders - self._runs.keys() - self._damaged, reverse=True)
        new = []
        for path in unseen:
            if time.monotonic() > deadline:
                break
            new += [path] if self._open(path) else []
        self.behind = sum(path not in self._runs and path not in self._damaged for path in unseen)
        changes = [path for path in self._ended_in_turn(folders) if _stamp(path) != self._stamps[path]]
        updates = []
        for path in dict.fromkeys((*new, *self._live, *changes)):
            if path not in self._runs or path in departures:
                continue
            self._stamps[path] = _stamp(path)
            try:
                archived = notes.archived(RunDir(Path(path)).notes)
                ended = self._runs[path].state in ENDED
            except Exception as exc:  # no error of a damaged record may hide the other runs
                logger.warning("%s: %s", path, exc)
                self._damaged.add(path)
                departures.append(path)
                continue
            if archived:
                departures += [path] if path in self._shown else []
                continue
            if ended and path in self._live and path not in self._stock:
                self._runs[path] = Run(Path(path))  # a new Run, to free the curves cached in the old one
            updates.append(self._runs[path])
            self._shown.add(path)
            (self._live.discard if ended else self._live.add)(path)
        losses = tuple(self._runs[path] for path in departures if path in self._shown)
        for path in departures:
            self._shown.discard(path)
            self._live.discard(path)
            if path not in folders or path in self._damaged:
                del self._runs[path], self._stamps[path]
        return Changes(updates=tuple(updates), departures=losses)

    def _run_folders(self) -> set[str]:
        """Return the folder of every existing run."""
        folders: set[str] = set()
        for root in self._roots:
            for path in itertools.chain(_folders(root / "runs"), _folders(root)):
                if path in self._runs or path in self._damaged or os.path.exists(RunDir(Path(path)).manifest):
                    folders.add(path)
            if not (root / "runs").is_dir() and self._looks % WALK_EVERY == 0:
                self._stock |= {str(record.path): Run.of(record) for record in find(root)}
        self._looks += 1
        return folders | {path for path in self._stock if os.path.exists(path)}

    def _open(self, path: str) -> bool:
        """Read the records of a run; return whether that succeeded."""
        run = self._stock.get(path) or Run(Path(path))
        try:
            _ = run.manifest, run.created, run.state
        except Exception as exc:  # no error of a damaged record may hide the other runs
            self._damaged.add(path)
            logger.warning("%s: %s", path, exc)
            return False
        self._runs[path], self._stamps[path] = run, ()
        return True

    def _ended_in_turn(self, folders: Container[str]) -> list[str]:
        ended = [path for path in self._runs if path not in self._live and path in folders]
        begin = self._turn if self._turn < len(ended) else 0
        self._turn = begin + ENDED_AT_ONCE
        return ended[begin : self._turn]


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.name.startswith(".") and _is_folder(entry)]
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of symbolic links
        return False


def _stamp(path: str) -> tuple[int, ...]:
    """Return modification times that change when an ended run gets a new job, note or tag."""
    run = RunDir(Path(path))
    return tuple(_changed_ns(folder) for folder in (run.notes, run.jobs_folder))


def _changed_ns(folder: Path) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
