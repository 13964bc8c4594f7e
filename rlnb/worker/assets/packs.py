"""Asset packs: robot and scene files that plugins make on this machine.

Below ``<cache>/assets`` each version of a pack has its own folder, ``packs/<name>-<version>``. It is built once, and
replaced only by a forced build. An asset root, ``roots/<names and versions>``, holds hard links to the files of all
installed packs. Another pack, or a newer version of one, adds a root and leaves the files of other packs alone.

The index of a root, ``assets.json``, lists the pack, SHA-256, licence and source of each file, and the reason for each
pack that could not be built. Files that are not in the index are the user's and are never overwritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.contracts.plugin_types import AssetPack
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.machine.packages import install_line
from rlnb.storage import files
from rlnb.storage.clock import age_s
from rlnb.storage.entries import copy
from rlnb.storage.serial import from_json, to_json

logger = logging.getLogger(__name__)

INDEX = "assets.json"
WAIT_S = 600.0
"""Seconds that a process waits while another process builds packs in the same folder."""
_BUILDING = ".building-"
_LEFT_S = 3600.0
"""Age in seconds after which a draft is taken for the leftover of a killed process."""
_LONGEST_NAME = 100


def cache_folder() -> Path:
    """Return the folder for generated files: RLNB_CACHE, else the user's cache folder."""
    base = os.environ.get("RLNB_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rlnb"


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """Outcome of a build."""

    folder: Path
    """The asset root."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Packs that could not be built, and why."""
    foreign: tuple[str, ...] = ()
    """Paths at which the user's own file was kept, instead of the pack's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedFile:
    """A file of a pack, in the index of an asset root."""

    sha256: str
    licence: str
    """SPDX identifier."""
    source: str
    """File or script that the file was made from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A pack, in the index of an asset root."""

    version: str
    files: Mapping[str, PackedFile] = field(default_factory=dict)
    """By path below the root."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The index of an asset root, by pack name."""

    packs: Mapping[str, Entry] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    """Packs that could not be built, and why."""

    def of(self, name: str, outcome: Entry | str) -> Index:
        """Return the index after the build of a pack: with the pack's entry, or with the reason of its failure."""
        failed = {pack: reason for pack, reason in self.failed.items() if pack != name}
        if isinstance(outcome, str):
            return Index(packs=self.packs, failed={**failed, name: outcome})
        return Index(packs={**self.packs, name: outcome}, failed=failed)


def root_folder() -> Path:
    """Return the asset root of the installed packs, which may not exist yet."""
    name = "-".join(_folder_name(pack) for pack in plugins.asset_packs().values() if not pack.on_request)
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()[:16]
    return cache_folder() / "assets" / "roots" / name


def _packs_folder() -> Path:
    return cache_folder() / "assets" / "packs"


def _folder_name(pack: AssetPack) -> str:
    return f"{pack.name}-{pack.version}"


def build(
    destination: Path | None = None, *, on_request: bool = False, force: bool = False, retry: bool = True
) -> Built:
    """Build the installed packs and put their files into one folder. Packs that exist are rebuilt only by force.

    Args:
        destination: Folder for copies of the files; by default an asset root in the cache folder.
        on_request: Whether to include the packs that are built only on request.
        force: Whether to rebuild packs that exist.
        retry: Whether to retry packs that failed before: the cause may have been fixed.

    Raises:
        RlnbError: No installed plugin has a pack, or another process builds packs for longer than :data:`WAIT_S`.
    """
    packs = _packs(on_request=on_request)
    if destination is None:  # a pack that was requested once is part of every later root
        others = plugins.asset_packs().values()
        packs += [pack for pack in others if pack.on_request and pack not in packs and _is_built(pack)]
    if not packs:
        raise RlnbError(
            f"No asset pack is installed, so robots cannot be made offline. Use {install_line('rlnb-tasks')}"
        )
    folder = destination or root_folder()
    foreign: tuple[str, ...] = ()
    if force or _missing(packs, index(folder), retry):
        put = _link if destination is None else copy
        with _locked(_packs_folder()), _locked(folder):
            # Another process may have built some of them while this one waited.
            missing = _missing(packs, index(folder), retry)
            for pack in packs:
                rebuild = force and (on_request or not pack.on_request)
                if rebuild or pack in missing:
                    foreign += _add(pack, folder, put, force=rebuild)
    failed = {name: why for name, why in index(folder).failed.items() if name in {pack.name for pack in packs}}
    return Built(folder=folder, failed=failed, foreign=foreign)


def index(folder: Path) -> Index:
    """Return the index of an asset root; an empty index if the root has none."""
    return from_json(Index, files.read_json(folder / INDEX) or {}, ignore_unknown=True)


def fix(name: str, root: Path) -> str:
    """Return the fix for a file that is missing in an asset root, in one line.

    Args:
        name: The file's path below the root.
        root: The asset root.
    """
    pack = next((pack for pack in plugins.asset_packs().values() if name in pack.files), None)
    if pack is None:
        return "No installed asset pack makes this file. Set asset_root to a folder or URL that has it."
    argv = ["rlnb assets build", *(["--robots"] if pack.on_request else [])]
    command = " ".join([*argv, *([str(root)] if root != root_folder() else [])])
    if why := index(root).failed.get(pack.name):
        return f"The asset pack {pack.name} could not be built: {why} Fix that, then run: {command}"
    return command


def _packs(*, on_request: bool) -> list[AssetPack]:
    return [pack for pack in plugins.asset_packs().values() if on_request or not pack.on_request]


def _is_built(pack: AssetPack) -> bool:
    return (_packs_folder() / _folder_name(pack) / INDEX).is_file()


def _missing(packs: list[AssetPack], index: Index, retry: bool) -> list[AssetPack]:
    """Return the packs whose installed version is not built; those that failed before only with ``retry``."""
    versions = {name: entry.version for name, entry in index.packs.items()}
    passed_over = set() if retry else set(index.failed)
    return [pack for pack in packs if versions.get(pack.name) != pack.version and pack.name not in passed_over]


def _add(pack: AssetPack, root: Path, put: Callable[[Path, Path], None], *, force: bool) -> tuple[str, ...]:
    """Put a pack's files into a root, or write to its index why that failed; return the paths of the user's files."""
    earlier = index(root)
    try:
        source = _built(pack, force=force)
    except Exception as exc:  # from the plugin; other packs, and tasks that need only those, still work
        logger.warning("asset pack %s could not be built", pack.name, exc_info=True)
        reason = str(exc) if isinstance(exc, RlnbError) else f"{type(exc).__name__}: {exc}"
        _write_index(root, earlier.of(pack.name, reason))
        return ()
    entries = dict(index(source).packs[pack.name].files)
    ours = {path for entry in earlier.packs.values() for path in entry.files}
    foreign = [
        path
        for path, entry in entries.items()
        if (root / path).exists() and path not in ours and _sha256(root / path) != entry.sha256
    ]
    for path in foreign:
        del entries[path]
    for path in entries:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        put(source / path, root / path)
    _write_index(root, earlier.of(pack.name, Entry(version=pack.version, files=entries)))
    return tuple(foreign)


def _built(pack: AssetPack, *, force: bool) -> Path:
    """Return a pack's folder in the cache; build the pack if that does not exist. It appears complete or not at all."""
    folder = _packs_folder() / _folder_name(pack)
    if _is_built(pack) and not force:
        return folder
    for leftover in folder.parent.glob(f"{_BUILDING}*"):  # left by a killed process
        if age_s(leftover) > _LEFT_S:
            shutil.rmtree(leftover, ignore_errors=True)
    logger.info("building asset pack %s %s", pack.name, pack.version)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=_BUILDING) as temporary:
        draft = Path(temporary) / "pack"
        draft.mkdir()
        sources = plugins.load(pack.build)(draft)
        if set(sources) != set(pack.files):
            raise RlnbError(f"it wrote other files than it listed: {sorted(set(sources) ^ set(pack.files))}.")
        entries = {path: _entry(draft / path, pack.files[path], sources[path]) for path in sorted(sources)}
        _write_index(draft, Index(packs={pack.name: Entry(version=pack.version, files=entries)}))
        if _is_built(pack) and not force:  # another node was faster: not every shared file system has locks
            return folder
        if folder.exists():
            folder.rename(Path(temporary) / "former")
        try:
            draft.rename(folder)
        except OSError:  # another node was faster by a moment
            if not _is_built(pack):
                raise
    return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder. It is on the folder itself, since the parent of a mounted folder may be read-only.

    Raises:
        RlnbError: Another process holds it for longer than :data:`WAIT_S`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, start_s, warned = os.open(folder, os.O_RDONLY), time.monotonic(), False
    try:
        while not _try_lock(lock):
            if time.monotonic() - start_s > WAIT_S:
                raise RlnbError(
                    f"Another process has been building asset packs in {folder} for {WAIT_S:.0f} s. "
                    f"End that process (`fuser {folder}` names it), or set RLNB_CACHE to another folder."
                )
            if not warned:
                logger.warning("Another process builds asset packs in %s. Waiting for it.", folder)
                warned = True
            time.sleep(0.05)
        yield
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _link(source: Path, target: Path) -> None:
    """Make a hard link, which stays valid if only the asset root is mounted, as in a container."""
    temporary = target.with_name(files.temporary_name(target.name))
    try:
        os.link(source, temporary)
    except OSError:  # a file system without hard links
        copy(source, target)
        return
    temporary.replace(target)
    temporary.unlink(missing_ok=True)  # rename(2) does nothing if both names are links to the same file


def _entry(file: Path, licence: str, source: str) -> PackedFile:
    return PackedFile(sha256=_sha256(file), licence=licence, source=source)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write_index(folder: Path, index: Index) -> None:
    files.replace_json(folder / INDEX, to_json(index))


# -- packs that were made ahead of time ------------------------------------------------------------------------------
# The folder ``RLNB_PREBUILT`` holds a cache of Warp, ``warp``, and a cache of rlnb, ``rlnb``. An image belongs to root
# and may be read-only, while Warp and the packs need folders that this process can write. So a start copies what the
# caches of its user lack. Kernels of several kinds of CPUs and GPUs lie beside each other, since Warp names them by
# kind.


PREBUILT = "RLNB_PREBUILT"


def adopt_prebuilt() -> None:
    """Copy the files of ``RLNB_PREBUILT`` that the caches lack, before Warp and the packs read them.

    Whatever cannot be copied is made anew when it is needed, so that is a warning in the log.
    """
    if not (folder := os.environ.get(PREBUILT)):
        return
    try:
        for source, target in _missing_files(Path(folder, "warp"), warp_cache()):
            _copy(source, target)
        for source, target in _missing_files(Path(folder, "rlnb"), cache_folder()):
            _copy(source, target)
    except OSError as exc:
        logger.warning("The files of %s=%s were not copied: %s", PREBUILT, folder, exc)


def warp_cache() -> Path:
    """Return the folder of Warp's kernels, which Warp itself decides only when it is imported."""
    if cache := os.environ.get("WARP_CACHE_PATH"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warp"


def _missing_files(source: Path, cache: Path) -> Iterator[tuple[Path, Path]]:
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
