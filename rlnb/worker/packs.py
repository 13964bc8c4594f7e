"""Asset packs: robot and scene files that plugins make on this machine, built into one folder with an index.

The index, ``assets.json``, says of every file which pack wrote it, its SHA-256, licence and source, and of a pack that
could not be built why. Files that the index does not know are somebody else's and are never written over.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.records import files
from rlnb.spec import AssetPack

logger = logging.getLogger(__name__)

INDEX = "assets.json"


def cache_folder() -> Path:
    """Return the folder for generated files: RLNB_CACHE, else the user's cache folder."""
    base = os.environ.get("RLNB_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rlnb"


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What a build left."""

    folder: Path
    """The asset root."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Packs that could not be built, and why."""
    kept: tuple[str, ...] = ()
    """Paths of a pack where a file that no pack wrote was there before; it still is."""


def folder_name() -> Path:
    """Return where the installed packs are built, whether they are yet or not."""
    name = "-".join(f"{pack.name}-{pack.version}" for pack in _wanted(on_request=False))
    return cache_folder() / "assets" / name


def build(
    destination: Path | None = None, *, on_request: bool = False, force: bool = False, retry: bool = True
) -> Built:
    """Build the installed packs into one folder; quick when they are there already.

    Args:
        destination: Where to put the files; the cache folder by default.
        on_request: Whether to build those too that are built on request only.
        force: Whether to build again what is there.
        retry: Whether to try again what failed: somebody may have mended it.

    Raises:
        RlnbError: No plugin brings a pack.
    """
    wanted = _wanted(on_request=on_request)
    if not wanted:
        raise RlnbError("No asset pack is installed, so robots cannot be made offline. pip install rlnb-tasks")
    folder = destination or folder_name()
    kept: tuple[str, ...] = ()
    if force or _missing(wanted, index(folder), retry):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)  # the folder itself: what is around a mounted one may not be ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two workers that start together build it once
            for pack in wanted if force else _missing(wanted, index(folder), retry):
                kept += _build(pack, folder)
        finally:
            os.close(lock)
    failed = {name: why for name, why in index(folder)["failed"].items() if name in {pack.name for pack in wanted}}
    return Built(folder=folder, failed=failed, kept=kept)


def index(folder: Path) -> dict[str, Any]:
    """Return the index of an asset root: ``packs`` and ``failed``, both by the name of the pack."""
    found = files.read_json(folder / INDEX) or {}
    return {"packs": found.get("packs", {}), "failed": found.get("failed", {})}


def mend(name: str, root: Path) -> str:
    """Return what brings a missing file of an asset root, in one line.

    Args:
        name: The file's path below the root.
        root: The asset root.
    """
    pack = next((pack for pack in plugins.asset_packs().values() if name in pack.files), None)
    if pack is None:
        return "No installed asset pack makes it: set asset_root to a folder or URL that has it."
    words = ["rlnb assets build", *(["--robots"] if pack.on_request else [])]
    said = " ".join([*words, *([str(root)] if root != folder_name() else [])])
    if why := index(root)["failed"].get(pack.name):
        return f"The asset pack {pack.name} could not be built: {why} Then: {said}"
    return said


def _wanted(*, on_request: bool) -> list[AssetPack]:
    return [pack for pack in plugins.asset_packs().values() if on_request or not pack.on_request]


def _missing(wanted: list[AssetPack], known: Mapping[str, Any], retry: bool) -> list[AssetPack]:
    """Return the packs that were not built yet in this version, those that failed only where they are to be retried."""
    built = {name: pack["version"] for name, pack in known["packs"].items()}
    passed_over = set() if retry else set(known["failed"])
    return [pack for pack in wanted if built.get(pack.name) != pack.version and pack.name not in passed_over]


def _build(pack: AssetPack, folder: Path) -> tuple[str, ...]:
    """Build one pack into a folder, or write down why that failed; return the paths that are somebody else's."""
    logger.info("building asset pack %s %s", pack.name, pack.version)
    known = index(folder)
    known["failed"].pop(pack.name, None)
    ours = {path for entry in known["packs"].values() for path in entry["files"]}
    kept: list[str] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as temporary:
        made = Path(temporary)
        try:
            sources = plugins.load(pack.build)(made)
            if set(sources) != set(pack.files):
                raise RlnbError(f"it lists other files than it writes: {sorted(set(sources) ^ set(pack.files))}.")
            entries = {path: _entry(made / path, pack.files[path], sources[path]) for path in sorted(sources)}
        except Exception as exc:  # a plugin's: the other packs, and the tasks that need only them, go on
            logger.warning("asset pack %s could not be built", pack.name, exc_info=True)
            known["failed"][pack.name] = str(exc) if isinstance(exc, RlnbError) else f"{type(exc).__name__}: {exc}"
            _write_index(folder, known)
            return ()
        for path in list(entries):
            if (folder / path).exists() and path not in ours:
                kept.append(path)
                del entries[path]
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(made / path, folder / path)
    known["packs"][pack.name] = {"version": pack.version, "files": entries}
    _write_index(folder, known)
    return tuple(kept)


def _entry(file: Path, licence: str, source: str) -> dict[str, str]:
    return {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "licence": licence, "source": source}


def _write_index(folder: Path, known: Mapping[str, Any]) -> None:
    temporary = folder / f".{INDEX}.{os.getpid()}"
    temporary.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    temporary.replace(folder / INDEX)
