"""Readers of the runs that tabs show, kept for a while: tabs repeat their requests, and event files only grow."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import rlnb

MOST = 16


class Readers:
    """The last runs of all tabs, each with its reader of event files; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: OrderedDict[Path, tuple[rlnb.Run, threading.Lock]] = OrderedDict()

    @contextlib.contextmanager
    def reader(self, run: rlnb.Run) -> Iterator[rlnb.Run]:
        """Yield the reader that was kept for a run, or else the run itself; no other thread reads it meanwhile."""
        with self._lock:
            reader, alone = self._readers.setdefault(run.path, (run, threading.Lock()))
            self._readers.move_to_end(run.path)
            while len(self._readers) > MOST:
                self._readers.popitem(last=False)
        with alone:
            yield reader
