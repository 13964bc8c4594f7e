"""The one reader of the runs' folders: a thread of the server, which works while a page is connected."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import rlnb
from rlnb.launchers import RunIndex
from rlnb.plugin import ENDED
from rlnb_jupyterlab import curves, logs
from rlnb_jupyterlab.messages import Message, Place, PlacesMessage, RunsMessage, encoded
from rlnb_jupyterlab.pages import Page, Pages
from rlnb_jupyterlab.rows import Row, row

logger = logging.getLogger(__name__)
Item = TypeVar("Item")

LOOK_S = 2.0
"""Minimum seconds between two refreshes of the list."""
SHARE = 0.03
"""Largest share of a core that refreshes take: with very many live runs they become less frequent. A single slow
refresh, such as one that imports a module, does not delay the next: the faster one of the last two counts."""
FIRST_S = 0.3
"""Seconds of each refresh for new runs: if there are very many, the newest are shown first."""
FILL_S = 0.5
"""Seconds of each refresh for the curves of ended runs, until all of them are read."""


class Watcher:
    """Keeps the list of runs, and sends its changes to every page.

    Args:
        roots: rlnb roots. A run outside of them is not shown, even if a symbolic link in a root leads to it.
        pages: The connected pages.
    """

    def __init__(self, roots: Sequence[Path], pages: Pages) -> None:
        self.roots = [root.resolve() for root in roots]
        self._pages = pages
        self._index = RunIndex(self.roots)
        self._lock = threading.Lock()
        self._beginning = threading.Lock()
        self._runs: dict[str, rlnb.Run] = {}
        self._rows: dict[str, Row] = {}
        self._without: dict[str, None] = {}
        self._changed: dict[str, Row] = {}
        self._gone: dict[str, None] = {}
        """Keys for the next message to the pages, like the rows of ``_changed``."""
        self._places: list[Place] = []
        self._odd: set[str] = set()
        """Warnings about odd runs that were logged: each refresh reads these runs, but warns once."""
        self._read: set[str] = set()
        """Keys of the runs whose curves were read for pages."""
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._call: Callable[..., Any] = lambda *_: None

    # -- called on the server's threads

    def prepare(self) -> None:
        """Refresh once while the server starts: the first page then waits neither for imports nor for a long list."""
        threading.Thread(target=self._prepare, name="rlnb-prepare", daemon=True).start()

    def start(self, call: Callable[..., Any]) -> None:
        """Start the thread, unless it runs already.

        Args:
            call: Schedules a call of a function on the server's thread.
        """
        self._call = call
        self._wake.set()
        with self._beginning:  # a thread that is about to end does not see a page that has just joined
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rlnb-watcher", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Make a running thread refresh at once, or end if no page is connected any more."""
        self._wake.set()

    def stop(self) -> None:
        """End the thread for good."""
        self._stopped = True
        self._wake.set()

    def run(self, key: str) -> rlnb.Run | None:
        """Return a run by its key, with a reader of its own; None if there is no such run."""
        with self._lock:
            while key not in self._runs:
                self._look()
                if not self._index.behind:
                    break
            run = self._runs.get(key)
        if run is None or not run.path.is_dir() or not self._inside(run.path):
            return None
        return rlnb.Run(run.path)

    def key_at(self, path: Path) -> str | None:
        """Return the key of the run in whose folder a file lies; None if there is no such run.

        Args:
            path: Path of the file, without symbolic links.
        """
        keys = [_key(folder) for folder in path.parents if folder not in self.roots and self._inside(folder)]
        with self._lock:
            while keys and not any(key in self._runs for key in keys):
                self._look()
                if not self._index.behind:
                    break
            return next((key for key in keys if key in self._runs), None)

    def listed(self) -> list[rlnb.Run]:
        """Return the runs of the list. The thread reads them meanwhile."""
        with self._lock:
            return [*self._runs.values()]

    def named(self, text: str) -> list[str]:
        """Return the ids of the listed runs that have an id or a name."""
        with self._lock:
            return sorted({row.id for row in self._rows.values() if text in (row.id, row.name)})

    def active(self) -> list[rlnb.Run]:
        """Return the runs that have not ended, according to the list."""
        with self._lock:
            return [self._runs[key] for key, line in self._rows.items() if line.state not in ENDED]

    def simulators(self) -> Sequence[Any]:
        """Return the warm simulators in jobs; see :meth:`rlnb.launchers.RunIndex.simulators`."""
        return self._index.simulators()

    # -- the thread's work

    def _prepare(self) -> None:
        try:
            with self._lock:
                self._look()
        except Exception:
            logger.exception("the list of runs could not be read")

    def _work(self) -> None:
        before = 0.0
        while not self._over():
            start_s = time.thread_time()  # CPU time: wall time would include waits for a busy machine or a slow disk
            try:
                self._tell()
                soon = self._index.behind > 0
            except Exception:  # a folder that changes while it is read must not end the thread
                logger.exception("the list of runs could not be refreshed")
                soon = False
            spent = time.thread_time() - start_s
            if not soon:
                self._wake.wait(LOOK_S if self._without else max(LOOK_S, min(before, spent) / SHARE))
                self._wake.clear()
            before = spent

    def _over(self) -> bool:
        with self._beginning:
            if self._pages.connected and not self._stopped:
                return False
            self._thread = None
            return True

    def _tell(self) -> None:
        places = [Place(path=str(root), trouble=trouble(root)) for root in self.roots]
        moved, self._places = places != self._places, places
        with self._lock:
            self._look()
            news = RunsMessage(rows=list(self._changed.values()), gone=list(self._gone))
            rows = list(self._rows.values())
            self._changed.clear()
            self._gone.clear()
        for page in self._pages.connected:
            if moved or not page.has_list:
                self._send(page, PlacesMessage(places=places))
            if not page.has_list:
                page.has_list = True
                self._send(page, RunsMessage(reset=True, rows=rows))
            elif news.rows or news.gone:
                self._send(page, news)
            with self._lock:
                messages = self._news(page)
            for message in messages:
                self._send(page, message)
        with self._lock:
            self._let_go()
            filled = [] if self._index.behind else self._fill()
        for page in self._pages.connected:
            if filled and page.has_list:
                self._send(page, RunsMessage(rows=filled))

    def _look(self) -> None:
        """Refresh the list, and keep the changes for the pages."""
        changes = self._index.refresh(FIRST_S)
        for run in changes.updates:
            key = key_of(run)
            try:
                if not self._inside(run.path):
                    self._forget(key)
                    continue
                old, ended = self._rows.get(key), run.state in ENDED
                new = row(run, key, metrics=not ended)
            except Exception as exc:  # a damaged record of any kind must not hide the other runs
                self._warn(run, exc)
                continue
            self._runs[key] = run
            if ended:
                self._without[key] = None
                new = new.with_metrics_of(old) if old else new
            if new != old:
                self._rows[key] = self._changed[key] = new
                self._gone.pop(key, None)
        for run in changes.departures:
            self._forget(key_of(run))

    def _forget(self, key: str) -> None:
        if key in self._rows:
            self._gone[key] = None
        for table in (self._runs, self._rows, self._without, self._changed):
            table.pop(key, None)

    def _news(self, page: Page) -> list[Message]:
        """Return the messages with new points of the curves that a page shows, and new text of its logs."""
        messages: list[Message] = []
        for key in list(page.watched):
            if key in self._runs:
                self._read.add(key)
                messages += self._of_one(key, functools.partial(curves.news, page, key, self._runs[key]))
        for log in list(page.followed):
            if log[0] in self._runs:
                messages += self._of_one(log[0], functools.partial(logs.news, page, log, self._runs[log[0]]))
        return messages

    def _of_one(self, key: str, ask: Callable[[], Iterable[Item]]) -> list[Item]:
        try:
            return list(ask())
        except Exception as exc:  # a damaged run must not stop the messages about other runs and to other pages
            self._warn(self._runs[key], exc)
            return []

    def _warn(self, run: rlnb.Run, exc: Exception) -> None:
        """Log a warning about an odd run, unless it was logged before."""
        text = f"{run.path}: {exc}"
        if text not in self._odd:
            self._odd.add(text)
            logger.warning("%s", text)

    def _let_go(self) -> None:
        """Drop the curves of ended runs that no page shows any more."""
        watched = {key for page in self._pages.connected for key in page.watched}
        for key in self._read - watched:
            if key in self._runs and self._rows[key].state in ENDED:
                self._runs[key] = rlnb.Run(self._runs[key].path)
        self._read &= watched

    def _fill(self) -> list[Row]:
        """Read the curves of some ended runs, with readers that are not kept, and return the runs' rows."""
        deadline = time.monotonic() + FILL_S
        filled = []
        newest = sorted(self._without, key=lambda key: self._rows[key].created, reverse=True)
        for key in newest:
            if time.monotonic() > deadline:
                break
            del self._without[key]
            for new in self._of_one(key, functools.partial(self._whole_row, key)):
                self._rows[key] = new
                filled.append(new)
        return filled

    def _whole_row(self, key: str) -> list[Row]:
        return [row(rlnb.Run(self._runs[key].path), key)]

    def _inside(self, path: Path) -> bool:
        real = path.resolve()
        return any(real.is_relative_to(root) for root in self.roots)

    def _send(self, page: Page, message: Message) -> None:
        self._call(page.send, encoded(message))


def trouble(root: Path) -> str:
    """Return why a folder cannot be read; empty if it does not exist yet, since the first run creates it."""
    try:
        with os.scandir(root):
            return ""
    except FileNotFoundError:
        return ""
    except OSError as exc:
        return exc.strerror or str(exc)


def key_of(run: rlnb.Run) -> str:
    """Return a run's key for pages. The key stands for the run's folder, so that no page asks for one by a path."""
    return _key(run.path)


def _key(folder: Path) -> str:
    return hashlib.blake2s(os.fsencode(folder), digest_size=10).hexdigest()
