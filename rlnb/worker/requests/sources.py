"""Source files of the user's own packages, which a process imports once and the user may edit afterwards.

Modules of ``%%task`` cells are not among them, since each edit of a cell is imported (:mod:`rlnb.worker.isaac.module`).
"""

from __future__ import annotations

import os
import sys
import threading
from importlib.machinery import ModuleSpec
from typing import Any

from rlnb.errors import FreshProcessError
from rlnb.storage.files import stamp
from rlnb.tasks.place import is_library
from rlnb.worker.isaac.own_files import own_file


class Sources:
    """The imported files of the user's own packages, and how they were when they were imported."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        """File of each module, by name; an empty string for a module that cannot change."""
        self._stamps: dict[str, str] = {}
        self._at_import: dict[str, str] = {}
        self._searches: set[tuple[int, str]] = set()
        """Thread and module of each search that goes on."""

    def watch(self) -> Sources:
        """Note each file from now on as its import begins, so that an edit after that is seen."""
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]
        return self

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Let the other finders find a module, and note the stamp of its file (see :data:`sys.meta_path`)."""
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
            if not isinstance(finder, Sources) and find is not None and (spec := find(name, path, target)) is not None:
                if spec.origin and not is_library(spec.origin):
                    self._at_import[os.path.abspath(spec.origin)] = stamp(spec.origin)
                return spec  # type: ignore[no-any-return]
        return None

    def note(self) -> None:
        """Note the modules that were imported since the last call."""
        for name, module in [*sys.modules.items()]:
            if name not in self._files:
                self._files[name] = file = own_file(module)
                if file:
                    self._stamps[file] = self._at_import.get(file) or stamp(file)

    def refuse_edited(self) -> None:
        """Raise an error if a file was edited since its import.

        Raises:
            FreshProcessError: A file was edited. A fresh process imports the new text.
        """
        self.note()
        for file, before in self._stamps.items():
            if stamp(file) != before:
                raise FreshProcessError(f"{file} was edited after this process had imported it.")
