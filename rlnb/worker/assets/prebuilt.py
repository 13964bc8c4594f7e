"""Kernels and asset packs that were made ahead of time, as in a container image.

The folder ``RLNB_PREBUILT`` holds a cache of Warp, ``warp``, and a cache of rlnb, ``rlnb``. An image belongs to root
and may be read-only, while Warp and the packs need folders that this process can write. So a start copies what the
caches of its user lack. Kernels of several kinds of CPUs and GPUs lie beside each other, since Warp names them by kind.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rlnb.worker.assets import packs

logger = logging.getLogger(__name__)

VARIABLE = "RLNB_PREBUILT"


def adopt() -> None:
    """Copy the files of ``RLNB_PREBUILT`` that the caches lack, before Warp and the packs read them.

    Whatever cannot be copied is made anew when it is needed, so that is a warning in the log.
    """
    if not (folder := os.environ.get(VARIABLE)):
        return
    try:
        for source, target in _missing(Path(folder, "warp"), warp_cache()):
            _copy(source, target)
        for source, target in _missing(Path(folder, "rlnb"), packs.cache_folder()):
            _copy(source, target)
    except OSError as exc:
        logger.warning("The files of %s=%s were not copied: %s", VARIABLE, folder, exc)


def warp_cache() -> Path:
    """Return the folder of Warp's kernels, which Warp itself decides only when it is imported."""
    if cache := os.environ.get("WARP_CACHE_PATH"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warp"


def _missing(source: Path, cache: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file below a folder that a cache does not have, with its place there."""
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = Path(folder, name)
            target = cache / path.relative_to(source)
            if not target.exists():
                yield path, target


def _copy(source: Path, target: Path) -> None:
    """Copy a file that appears whole or not at all: several ranks may start at the same time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".prebuilt-")
    os.close(handle)
    try:
        shutil.copyfile(source, temporary)
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
