"""Task cards of the living simulator, cached by source, libraries and versions."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path

from packaging.requirements import Requirement

from rlnb import plugins
from rlnb.display.status import status
from rlnb.errors import RlnbError
from rlnb.settings import Root, options
from rlnb.simulation import simulator
from rlnb.spec import CARD_SCHEMA, Task
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.tasks import requests
from rlnb.tasks.card import TaskCard
from rlnb.tasks.task import as_task


def task_card(task: Task | str, *, python: str | None = None, asset_root: str | None = None) -> TaskCard:
    """Return the card of a task: config values with types, cameras, agents, assets.

    Cached by source and versions; otherwise the living simulator resolves the task, which takes about a
    second, and 10 to 15 s when it has to start first.

    Raises:
        RlnbError: No such task, or it does not resolve.
    """
    return card_of(options.folders, as_task(task), python or options.python, asset_root or options.asset_root)


def card_of(root: Root, task: Task, python: str | None, asset_root: str | None) -> TaskCard:
    """Return the card of a task, as :func:`task_card`, without a look at ``rlnb.options``."""
    card = cached_card(root, task, python, asset_root)
    if card is not None:
        return card
    with status(f"Resolving {task.id}: no cached task card, so the worker looks (10 to 15 s if it has to start)"):
        card = simulator.request(requests.Card(task=task), python, asset_root)
    path = card_path(root, task, python, asset_root)
    if path is not None:
        with contextlib.suppress(OSError):  # a cache; that the root cannot be written is found elsewhere
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            files.write_once(path, card)
    return card


def card_path(root: Root, task: Task, python: str | None, asset_root: str | None) -> Path | None:
    """Return where the card of a task is cached; None where the worker's versions are not known here."""
    if python is not None:
        return None
    parts = {
        "schema": CARD_SCHEMA,
        "task": [task.id, task.source_sha256, task.files, task.presets, task.physics, task.renderer, task.success],
        "asset_root": asset_root or os.environ.get("ISAACSIM_ASSET_ROOT"),
        "versions": _installed(_stamps()),
        "libraries": sorted(plugins.libraries()),
    }
    key = hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()
    return root.cards / f"{key[:24]}.json"


def _stamps() -> tuple[int, ...]:
    """Return when the folders were changed last that packages are installed into."""
    return tuple(os.stat(folder).st_mtime_ns for folder in sys.path if folder.endswith("-packages"))


@functools.lru_cache(maxsize=1)
def _installed(stamps: tuple[int, ...]) -> dict[str, str]:
    """Return the versions of what a card depends on: Isaac Lab, rlnb, its plugins and what they need.

    Args:
        stamps: When the folders were changed in which packages are. Looking takes a twentieth of a second.
    """
    names = {"isaaclab", "rlnb"}
    names |= {entry.dist.name for entry in importlib.metadata.entry_points(group="rlnb") if entry.dist}
    for library in plugins.libraries().values():
        names |= {Requirement(text).name for text in library.requires}
    versions = {}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def cached_card(root: Root, task: Task, python: str | None, asset_root: str | None) -> TaskCard | None:
    """Return the cached card of a task, if there is one and its assets are as the card says."""
    path = card_path(root, task, python, asset_root)
    try:
        values = files.read_json(path) if path else None
        card = from_json(TaskCard, values) if values is not None else None
    except RlnbError:
        return None  # a cache: whatever is wrong with it, the worker makes a new one
    if card is None:
        return None
    for asset in card.assets.values():
        if asset.exists is not None and asset.exists != Path(asset.path).is_file():
            return None
    return card
