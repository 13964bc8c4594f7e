"""Imports a task's own module from its current source text."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from rlnb.storage.source_hash import body_of


def import_file(path: Path, local: Iterable[str]) -> ModuleType:
    """Import a task module from its file; import it again if it or a local file that it needs was edited.

    Args:
        path: The module.
        local: Files that the module needs, as paths from its folder. Those that exist there are imported from there.
    """
    local_files = sorted(name for name in local if (path.parent / name).is_file())
    text = b"".join(body_of(file.read_bytes()) for file in (path, *(path.parent / name for name in local_files)))
    name = f"rlnb_task_{path.stem}_{hashlib.sha256(text).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    folder = str(path.parent)
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    for importable in {path.parent, *((path.parent / name).parent for name in local_files)}:
        loaders = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (FromText, SOURCE_SUFFIXES))
        sys.path_importer_cache[str(importable)] = FileFinder(str(importable), *loaders)
    for module_name in (_module_name(file) for file in local_files if file.endswith(".py")):
        sys.modules.pop(module_name, None)  # loaded before an edit, or from a run's own copy
    spec = importlib.util.spec_from_file_location(name, path, loader=FromText(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class FromText(SourceFileLoader):
    """Loader that neither reads nor writes bytecode.

    Python takes bytecode for current if the size of the source and its time in whole seconds are unchanged. Two quick
    edits of one digit change neither.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
