"""Find runs: all that match a selection, or one by its id."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rlnb.errors import NotFoundError, RlnbError
from rlnb.records.find import find, find_one
from rlnb.run.listing import Runs
from rlnb.run.run import Run
from rlnb.run.selection import Selection, moment
from rlnb.settings import options
from rlnb.storage import cache

logger = logging.getLogger(__name__)


@cache.collector_paused()
def runs(
    path: str | Path | None = None,
    *,
    task: str | None = None,
    library: str | None = None,
    state: str | None = None,
    tag: str | None = None,
    since: str | datetime | timedelta | None = None,
    where: Mapping[str, Any] | None = None,
    archived: bool = False,
) -> Runs:
    """Return runs, newest first.

    Args:
        path: An rlnb root, a run, or a folder of stock Isaac Lab ``logs/``; None is ``rlnb.options.root``.
        task: Only runs of this task.
        library: Only runs of this library.
        state: Only runs in this state.
        tag: Only runs with this tag.
        since: Only runs created since then: ``"2026-11-20"``, a datetime, or a timedelta before now.
        where: Only runs with these arguments: ``{"num_envs": 512, "sim.dt": 0.005}``. A value may also be a predicate:
            ``{"agent.algorithm.learning_rate": lambda rate: rate < 1e-3}``.
        archived: Only archived runs; False omits them.

    Raises:
        NotFoundError: No such state or library exists, no run has such an argument, or the root is not a folder.
    """
    selection = Selection(
        task=task,
        library=library,
        state=state,
        tag=tag,
        since=moment(since),
        where={} if where is None else where,
        archived=archived,
    )
    if path is None and options.folders.path.exists() and not options.folders.path.is_dir():
        raise NotFoundError(f"{options.folders.path} is not a folder. Set rlnb.options.root to one.")
    readable, matches = [], []
    for record in find(_folder(path) if path is not None else options.folders.path):
        try:
            if selection.fits(record):
                matches.append(record)
            readable.append(record)
        except (RlnbError, OSError) as exc:  # a damaged record must not hide the other runs
            logger.warning("%s is not listed. %s", record.path, exc)
    selection.check_names(readable)
    matches.sort(key=lambda record: record.manifest.created, reverse=True)
    return Runs([Run.of(record) for record in matches])


def _folder(path: str | Path) -> Path:
    try:
        folder = Path(path).absolute()
        os.fsencode(folder)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            folder.stat()
    except (TypeError, ValueError, OSError) as exc:
        raise NotFoundError(f"path={path!r} is not the path of a folder. Use a folder with runs.") from exc
    return folder


def get_run(id: str) -> Run:
    """Return a run by its id, by a unique part of its id, or by its folder.

    Raises:
        NotFoundError: No run matches, or several do.
    """
    if not isinstance(id, str | Path):
        raise NotFoundError(f"{id!r} is not the id of a run. Use one that rlnb.runs() lists.")
    return Run.of(find_one(options.folders, str(id)))
