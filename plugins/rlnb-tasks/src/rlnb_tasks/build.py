"""Writes the pack. Needs pxr and newton, so it runs in the worker's interpreter."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path

from rlnb_tasks import __version__, cartpole, files, newton_robots, props
from rlnb_tasks.plugin import PACK, pack_version

INDEX = "assets.json"
"""What was written: SHA-256, licence and source of every file."""


def build(folder: Path) -> None:
    """Write every file of the pack below ``folder``, and an index of them.

    The same versions of this package, newton and USD give the same bytes.

    Args:
        folder: The asset root, as in ``ISAACSIM_ASSET_ROOT``. Must exist.

    Raises:
        RlnbError: newton is not installed, or its files are not as this package knows them.
    """
    cartpole.write(folder)
    props.write(folder)
    newton_robots.write(folder)
    entries = {
        path: {"sha256": _sha256(folder / path), "licence": licence, "source": _source(path)}
        for path, licence in sorted(files.LICENCES.items())
    }
    index = {"pack": PACK, "version": pack_version(), "files": entries}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _source(path: str) -> str:
    if path not in files.FROM_NEWTON:
        return f"rlnb-tasks {__version__}"
    made_from = newton_robots.source(path)
    where = f"newton/examples/assets/{made_from.name}"
    return f"newton {metadata.version('newton')}: {where} (sha256 {_sha256(made_from)})"


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
