"""Source files of the user's own packages, which a process imports once and the user may edit afterwards.

Modules of ``%%task`` cells are not among them, since each edit of a cell is imported (:mod:`rlnb.worker.isaac.module`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from rlnb.errors import FreshProcessError
from rlnb.storage.files import stamp
from rlnb.tasks.place import is_library
from rlnb.worker.isaac import release
from rlnb.worker.isaac.module import FromText


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
                self._files[name] = file = _own_file(module)
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


def stamps(cfg: Any, imports: Iterable[str], kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the user's own packages that define a task, each with its stamp.

    Args:
        cfg: The env config.
        imports: Modules that the user has named to register tasks.
        kwargs: Arguments of the task's registration, some of which name YAML files.
    """
    names = {cls.__module__ for cls in type(cfg).__mro__}
    packages = {name.partition(".")[0] for name in (*names, *imports)}
    packages -= release.PACKAGES  # a checkout of Isaac Lab has a thousand files
    modules = {name: module for name, module in [*sys.modules.items()] if name.partition(".")[0] in packages}
    modules |= {name: sys.modules[name] for name in names if name in sys.modules}
    found = [file for module in modules.values() if (file := _own_file(module))]
    return {file: stamp(file) for file in sorted({*found, *_yaml_files(kwargs)})}


def _yaml_files(kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the YAML files of the user's own packages that a registration names as ``"package:file.yaml"``."""
    for value in kwargs.values():
        if isinstance(value, str) and value.endswith(".yaml"):
            package, _, name = value.rpartition(":")
            with contextlib.suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(package) if package else None
                for folder in (spec.submodule_search_locations or ()) if spec else ():
                    if not is_library(file := os.path.join(folder, name)):
                        yield file


def _own_file(module: ModuleType) -> str:
    """Return the file of a module that the user may edit; an empty string for any other module."""
    file: str | None = getattr(module, "__file__", None)
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    if not isinstance(file, str) or isinstance(loader, FromText) or is_library(file):
        return ""
    return os.path.abspath(file)
