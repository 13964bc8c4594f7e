"""Copies only the files that given tasks need from an asset root to a folder, for machines without internet access.

The folder can then serve as the asset root of those tasks.
"""

from __future__ import annotations

import contextlib
import posixpath
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from rlnb.configs.card import AssetRoot
from rlnb.errors import RlnbError
from rlnb.protocol.requests import Mirrored
from rlnb.storage import entries, files

USD = (".usd", ".usda", ".usdc")
TIMEOUT_S = 60.0
UDIM = "<UDIM>"
TILES = range(1001, 1101)
"""Tile numbers that replace ``<UDIM>`` in a texture's file name: UDIM numbers tiles from 1001, ten to a row."""


def mirror(names: Iterable[str], root: AssetRoot, folder: Path) -> Mirrored:
    """Copy files and everything they refer to: layers, references, payloads, textures.

    References inside MDL files are not followed.

    Args:
        names: Paths of the files, relative to the root.
        root: Asset root to copy from, a folder or a URL.
        folder: Destination. Each file keeps its path below the root.

    Raises:
        RlnbError: A file cannot be read or written.
    """
    copies: list[str] = []
    existing: list[str] = []
    missing: dict[str, str] = {}
    outside: dict[str, str] = {}
    size = 0
    waiting = {name: "the task" for name in names}
    visits: set[str] = set()
    tiles: set[str] = set()  # not every tile of a tiled texture has to exist
    while waiting:
        name, named_by = waiting.popitem()
        visits.add(name)
        target = folder / name
        if target.is_file():
            existing.append(name)
        elif _fetch(name, root, target):
            copies.append(name)
            size += target.stat().st_size
        else:
            if name not in tiles:
                missing[name] = named_by
            continue
        for reference in _references(target):
            below_root = _below_root(name, reference, root)
            if len(below_root) > 1:
                tiles.update(one for one in below_root if one is not None)
            for below in below_root:
                if below is None:
                    outside[reference] = name
                elif below not in visits:
                    waiting.setdefault(below, name)
    return Mirrored(
        root=root.path, copied=tuple(copies), existing=tuple(existing), missing=missing, outside=outside, bytes=size
    )


def _fetch(name: str, root: AssetRoot, target: Path) -> bool:
    """Copy one file and return whether the root has it. The target appears only once the copy is complete."""
    temporary, size = target.with_name(files.temporary_name(target.name)), None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            source: IO[bytes]
            if root.local:
                source = stack.enter_context(open(Path(root.path) / name, "rb"))
            else:
                url = f"{root.path}/{urllib.parse.quote(name)}"
                source = response = stack.enter_context(urllib.request.urlopen(url, timeout=TIMEOUT_S))
                size = response.headers["Content-Length"]
            shutil.copyfileobj(source, stack.enter_context(entries.open_to_add(temporary, anew=True)))
        # http.client reads in chunks without an error when the server closes the connection too early.
        if size is not None and temporary.stat().st_size != int(size):
            raise OSError(f"the server closed the connection after {temporary.stat().st_size} of {size} bytes")
        temporary.replace(target)
    except FileNotFoundError:
        return False
    except urllib.error.HTTPError as exc:
        if exc.code in (403, 404):  # cloud storage answers 403 for a file that does not exist
            return False
        raise RlnbError(f"{root.path}/{name}: {exc}") from exc
    except OSError as exc:
        raise RlnbError(f"{name} cannot be copied to {target}: {exc}") from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return True


def _references(path: Path) -> list[str]:
    """Return the references in a USD file, exactly as written; an empty list for any other file."""
    if path.suffix.lower() not in USD:
        return []
    from pxr import UsdUtils

    sublayers, references, payloads = UsdUtils.ExtractExternalReferences(str(path))
    return [str(one) for one in (*sublayers, *references, *payloads) if one]


def _below_root(name: str, reference: str, root: AssetRoot) -> list[str | None]:
    """Return the paths below the root for a file's reference.

    A tiled texture has one path per tile. A reference to a file outside the root gives ``[None]``.
    """
    if reference.startswith(f"{root.path}/"):
        below = reference[len(root.path) + 1 :]
    elif "://" in reference or reference.startswith("/"):
        return [None]
    elif not reference.startswith(".") and reference.endswith(".mdl"):
        return []  # a material from the renderer's own library
    else:
        below = posixpath.normpath(posixpath.join(posixpath.dirname(name), reference))
    if below.startswith("../"):
        return [None]
    return [below.replace(UDIM, str(tile)) for tile in TILES] if UDIM in below else [below]
