"""Task cards from the warm simulator, cached by the task's source, the libraries and their versions."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

from rlnb.configs.card import CARD_SCHEMA, TaskCard
from rlnb.display.status import status
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.settings import Root, options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.spec import Task
from rlnb.storage import entries, files
from rlnb.storage.access import ForeignLinkError
from rlnb.storage.serial import from_json
from rlnb.version import PACKAGES


def card_of(root: Root, task: Task, python: str | None, asset_root: str | None) -> TaskCard:
    """Return the card of a task, as :meth:`rlnb.Task.card` does, without reading ``rlnb.options``.

    Args:
        root: Folders with the cached cards.
        task: The task, with the version of its source that is used.
        python: Command of the worker's interpreter; None is this one.
        asset_root: Folder or URL of robot assets; None searches for one.

    Raises:
        RlnbError: The task does not exist or does not resolve.
    """
    card = cached_card(root, task, python, asset_root) or _new_card(root, task, python, asset_root)
    if card.warning:
        files.warn_once(card.warning)
    return card


def _new_card(root: Root, task: Task, python: str | None, asset_root: str | None) -> TaskCard:
    """Return the card that the warm simulator makes, and cache it."""
    with status(f"Resolving {task.id}, which has no cached task card (10 to 15 s if the worker has to start)"):
        card = pool.request(requests.Card(task=task), python, asset_root)
    is_faulty = bool(card.requires) or any(asset.fix for asset in card.own_assets.values())
    if not is_faulty:  # a fault is looked at again
        _keep(card_path(root, task, python, asset_root), card)
    return card


def _keep(path: Path | None, card: TaskCard) -> None:
    """Write a card into its file, if it has one."""
    if path is not None:
        with contextlib.suppress(OSError, ForeignLinkError):  # only a cache; other code reports an unwritable root
            files.make_folder(path.parent)
            entries.remove(path)
            files.write_once(path, card)


def keep_term_sizes(
    task: Task, python: str | None, asset_root: str | None, sizes: Mapping[str, Mapping[str, str]]
) -> None:
    """Add the sizes of terms, which an env of the task has told, to the cached card."""
    if not sizes or task.overrides:  # other values can make terms of other sizes
        return
    where = (options.folders, task, python or options.python, asset_root or options.asset_root)
    card = cached_card(*where)
    if card is not None and card.term_sizes != sizes:
        _keep(card_path(*where), dataclasses.replace(card, term_sizes=sizes))


def card_path(root: Root, task: Task, python: str | None, asset_root: str | None) -> Path | None:
    """Return the file that caches a task's card; None if another interpreter or machine runs the worker.

    The package versions of another interpreter, which the file name depends on, are unknown in this process.
    """
    if python is not None or options.simulator is not None or placement.of_this_call.get() is not None:
        return None
    parts = {
        "schema": CARD_SCHEMA,
        "task": [
            task.id,
            task.source_sha256,
            task.files,
            task.presets,
            task.physics,
            task.renderer,
            task.success,
            task.launcher_args,
            task.imports,
        ],
        "asset_root": asset_root or os.environ.get("ISAACSIM_ASSET_ROOT"),
        "versions": _installed(_stamps()),
        "libraries": sorted(plugins.libraries()),
    }
    key = hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()
    return root.cards / f"{key[:24]}.json"


def _stamps() -> tuple[int, ...]:
    """Return the modification times of the folders that packages are installed into, in nanoseconds."""
    return tuple(os.stat(folder).st_mtime_ns for folder in sys.path if folder.endswith("-packages"))


@functools.lru_cache(maxsize=1)
def _installed(stamps: tuple[int, ...]) -> dict[str, str]:
    """Return the versions of the packages that a card depends on, plugins and packages of tasks included.

    Args:
        stamps: Modification times of the package folders. They are the cache key, because a lookup takes 50 ms.
    """
    names = {*PACKAGES}
    for group in ("rlnb", "isaaclab.tasks"):
        names |= {entry.dist.name for entry in importlib.metadata.entry_points(group=group) if entry.dist}
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
    """Return the cached card of a task; None if there is none, or its sources or assets have changed since."""
    path = card_path(root, task, python, asset_root)
    try:
        values = files.read_json(path) if path else None
        card = from_json(TaskCard, values) if values is not None else None
    except RlnbError:
        return None  # the worker makes a new card in place of an unreadable one
    if card is None:
        return None
    for asset in (*card.assets.values(), *card.own_assets.values()):
        if asset.exists is not None and asset.exists != Path(asset.path).is_file():
            return None
    for source, stamp in card.sources.items():
        if files.stamp(source) != stamp:
            return None
    return card
