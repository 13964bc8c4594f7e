"""The files of the user's own packages: the stamps of those that define a task, and the hashes of all."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from rlnb.errors import FreshProcessError
from rlnb.protocol.code_location import is_library
from rlnb.storage.files import source_hash, stamp
from rlnb.worker.isaac import release
from rlnb.worker.isaac.modules import FromText


def stamps(cfg: Any, imports: Iterable[str], values: Iterable[object]) -> dict[str, str]:
    """Return the files of the user's own packages that define a task, each with its stamp.

    Args:
        cfg: The env config.
        imports: Modules that the user has named to register tasks.
        values: Values of the task's registration, some of which name YAML files.
    """
    found = {file: imported(file) for file in _own_files(cfg, imports).values()}
    found |= dict.fromkeys(_yaml_files(values))
    return {file: noted.stamp if noted else stamp(file) for file, noted in sorted(found.items())}


def hashes(cfg: Any, imports: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the modules of the user's own packages that this process has imported, by their names.

    A hash is that of the text that was imported, which the file may no longer have.

    Args:
        cfg: The env config.
        imports: Modules that the user has named to register tasks.
    """
    digests = {}
    for name, file in sorted({**_every_own_file(), **_own_files(cfg, imports)}.items()):
        if noted := imported(file):
            digests[name] = noted.sha256
            continue
        with contextlib.suppress(OSError):  # deleted since its import
            digests[name] = source_hash(Path(file).read_bytes())
    return digests


def _every_own_file() -> dict[str, str]:
    """Return the imported files of the user's own packages, by the name of the module.

    Those of Isaac Lab, Isaac Sim and rlnb's own plugins are not among them, even if they are in a checkout.
    """
    shipped = tuple(f"{folder}{os.sep}" for folder in _shipped_folders())
    found = {name: own_file(module) for name, module in [*sys.modules.items()] if not _is_isaaclab(name)}
    return {name: file for name, file in found.items() if file and not file.startswith(shipped)}


def _shipped_folders() -> set[str]:
    """Return the folders of Isaac Sim, which it names in a variable, and of rlnb's own plugins in a checkout of it."""
    folders = {str(Path(__file__).parents[3] / "plugins")}
    if isaac_sim := os.environ.get("ISAAC_PATH"):
        folders |= {os.path.abspath(isaac_sim), os.path.realpath(isaac_sim)}
    return folders


def _is_isaaclab(name: str) -> bool:
    return name.partition(".")[0] in release.PACKAGES


def _own_files(cfg: Any, imports: Iterable[str]) -> dict[str, str]:
    """Return the imported files of the packages that define a task, by the name of the module."""
    names = {cls.__module__ for cls in type(cfg).__mro__}
    packages = {name.partition(".")[0] for name in (*names, *imports)}
    packages -= release.PACKAGES  # a checkout of Isaac Lab has a thousand files
    modules = {name: module for name, module in [*sys.modules.items()] if name.partition(".")[0] in packages}
    modules |= {name: sys.modules[name] for name in names if name in sys.modules}
    return {name: file for name, module in modules.items() if (file := own_file(module))}


def _yaml_files(values: Iterable[object]) -> Iterator[str]:
    """Yield the YAML files of the user's own packages that a registration names as ``"package:file.yaml"``."""
    for value in values:
        if isinstance(value, str) and value.endswith(".yaml"):
            package, _, name = value.rpartition(":")
            with contextlib.suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(package) if package else None
                for folder in (spec.submodule_search_locations or ()) if spec else ():
                    if not is_library(file := os.path.join(folder, name)):
                        yield file


def own_file(module: ModuleType) -> str:
    """Return the file of a module that the user may edit; an empty string for any other module."""
    file: str | None = getattr(module, "__file__", None)
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    if not isinstance(file, str) or isinstance(loader, FromText) or is_library(file):
        return ""
    return os.path.abspath(file)


# -- imports ---------------------------------------------------------------------------------------------------------


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


# -- edited files ----------------------------------------------------------------------------------------------------
# Modules of ``%%task`` cells are not among the files that are looked at, since each edit of a cell is imported
# (:mod:`rlnb.worker.isaac.modules`).


class Sources:
    """The imported files of the user's own packages, and how they were when they were imported."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        """File of each module, by name; an empty string for a module that cannot change."""
        self._stamps: dict[str, str] = {}

    def watch(self) -> Sources:
        """Note each file from now on as its import begins, so that an edit after that is seen."""
        watch()
        return self

    def note(self) -> None:
        """Note the modules that were imported since the last call."""
        for name, module in [*sys.modules.items()]:
            if name not in self._files:
                self._files[name] = file = own_file(module)
                if file:
                    noted = imported(file)
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
