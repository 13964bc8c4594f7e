"""The files of the user's own packages as they were when this process imported them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from rlnb.protocol.messages import is_library
from rlnb.storage.files import source_hash, stamp
from rlnb.worker.isaac import release
from rlnb.worker.isaac.module import FromText


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """A file as it was when its import began."""

    stamp: str
    """Stamp of the file."""
    sha256: str
    """SHA-256 of the file."""


class ImportWatch:
    """A finder of :data:`sys.meta_path` that lets the others find a module, and notes how its file is."""

    only_watches = True
    """Whether it finds only what the others find."""

    def __init__(self) -> None:
        self.imported: dict[str, Imported] = {}
        """The files that were imported, by their absolute path."""
        self._searches: set[tuple[int, str]] = set()
        """Thread and module of each search that goes on."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return what the other finders find, and note the file."""
        search = (threading.get_ident(), name)
        if search in self._searches:  # another finder that searches through all of them
            return None
        self._searches.add(search)
        try:
            return self._search(name, path, target)
        finally:
            self._searches.remove(search)

    def _search(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None and (spec := find(name, path, target)) is not None:
                self._note(name, spec)
                return spec  # type: ignore[no-any-return]
        return None

    def _note(self, name: str, spec: ModuleSpec) -> None:
        is_own = spec.has_location and spec.origin and not is_library(spec.origin)
        if is_own and not isinstance(spec.loader, FromText) and name.partition(".")[0] not in release.PACKAGES:
            with contextlib.suppress(OSError):  # a module in a zip archive
                file = os.path.abspath(str(spec.origin))
                self.imported[file] = Imported(stamp=stamp(file), sha256=source_hash(Path(file).read_bytes()))


_watch = ImportWatch()


def watch() -> None:
    """Note each file from now on as its import begins."""
    if _watch not in sys.meta_path:
        sys.meta_path.insert(0, _watch)  # type: ignore[arg-type]


def imported(file: str) -> Imported | None:
    """Return how a file was when its import began; None if it was imported before :func:`watch`, or not at all."""
    return _watch.imported.get(file)
