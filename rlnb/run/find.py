"""Find runs: all that match, or one by its id."""

from __future__ import annotations

import logging
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

logger = logging.getLogger(__name__)


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
        since: Only runs that were started since then: ``"2026-11-20"``, a datetime, or a timedelta (so long ago).
        where: Only runs of which this was asked: ``{"num_envs": 512, "sim.dt": 0.005}``, agent values as
            ``{"agent.algorithm.learning_rate": lambda rate: rate < 1e-3}``.
        archived: Only runs that are archived; else those are left out.

    Raises:
        NotFoundError: There is no such state or library, of no run such a thing was asked, or the root is no folder.
    """
    selection = Selection(
        task=task, library=library, state=state, tag=tag, since=moment(since), where=where or {}, archived=archived
    )
    if path is None and options.folders.path.exists() and not options.folders.path.is_dir():
        raise NotFoundError(f"{options.folders.path} is no folder, so no runs can be in it: rlnb.options.root = ...")
    readable, matches = [], []
    for record in find(Path(path).absolute() if path is not None else options.folders.path):
        try:
            if selection.fits(record):
                matches.append(record)
            readable.append(record)
        except (RlnbError, OSError) as exc:  # one odd record must not hide the others
            logger.warning("%s is not listed. %s", record.path, exc)
    selection.check_names(readable)
    matches.sort(key=lambda record: record.manifest.created, reverse=True)
    return Runs([Run.of(record) for record in matches])


def get_run(id: str) -> Run:
    """Return one run by its id, by a unique part of it, or by its folder.

    Raises:
        NotFoundError: No run, or several.
    """
    return Run.of(find_one(options.folders, id))
