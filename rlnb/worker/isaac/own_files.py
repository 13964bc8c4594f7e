"""The files of the user's own packages: the stamps of those that define a task, and the hashes of all."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from rlnb.protocol.messages import is_library
from rlnb.storage.files import source_hash, stamp
from rlnb.worker.isaac import import_watch, release
from rlnb.worker.isaac.module import FromText


def stamps(cfg: Any, imports: Iterable[str], values: Iterable[object]) -> dict[str, str]:
    """Return the files of the user's own packages that define a task, each with its stamp.

    Args:
        cfg: The env config.
        imports: Modules that the user has named to register tasks.
        values: Values of the task's registration, some of which name YAML files.
    """
    found = {file: import_watch.imported(file) for file in _own_files(cfg, imports).values()}
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
        if noted := import_watch.imported(file):
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
