"""Source files of the user's own packages, which a process imports once and the user may edit afterwards.

Modules of ``%%task`` cells are not among them, since each edit of a cell is imported (:mod:`rlnb.worker.isaac.module`).
"""

from __future__ import annotations

import sys

from rlnb.errors import FreshProcessError
from rlnb.storage.files import stamp
from rlnb.worker.isaac import import_watch
from rlnb.worker.isaac.own_files import own_file


class Sources:
    """The imported files of the user's own packages, and how they were when they were imported."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        """File of each module, by name; an empty string for a module that cannot change."""
        self._stamps: dict[str, str] = {}

    def watch(self) -> Sources:
        """Note each file from now on as its import begins, so that an edit after that is seen."""
        import_watch.watch()
        return self

    def note(self) -> None:
        """Note the modules that were imported since the last call."""
        for name, module in [*sys.modules.items()]:
            if name not in self._files:
                self._files[name] = file = own_file(module)
                if file:
                    noted = import_watch.imported(file)
                    self._stamps[file] = noted.stamp if noted else stamp(file)

    def refuse_edited(self) -> None:
        """Raise an error if a file was edited since its import.

        Raises:
            FreshProcessError: A file was edited. A fresh process imports the new text.
        """
        self.note()
        for file, before in self._stamps.items():
            if stamp(file) != before:
                raise FreshProcessError(f"{file} was edited after this process had imported it.")
