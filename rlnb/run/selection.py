"""Find runs: all that match a selection, or one by its id."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from rlnb.errors import NotFoundError, RlnbError, refuse_other_than_text, unknown
from rlnb.hooks import plugins
from rlnb.records.arguments import ARGUMENTS, argument, arguments_of
from rlnb.records.facts import RunFacts, tags_of
from rlnb.records.find import find, find_one
from rlnb.records.notes import archived
from rlnb.records.record import RunRecord
from rlnb.run.listing import Runs
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import State
from rlnb.storage import cache


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The properties that a run must have; None matches any."""

    task: str | None = None
    library: str | None = None
    state: str | None = None
    tag: str | None = None
    since: datetime | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    """Argument name to its value, or to a predicate on it; names as in :func:`rlnb.records.arguments.arguments_of`."""
    archived: bool = False
    """Whether to select only archived runs; otherwise they are omitted."""

    def __post_init__(self) -> None:
        for name in ("task", "library", "state", "tag"):
            if (value := getattr(self, name)) is not None:
                refuse_other_than_text(name, value)
        if not isinstance(self.where, Mapping) or not all(isinstance(name, str) for name in self.where):
            raise NotFoundError(f'where={self.where!r} is not a mapping of names. Use where={{"num_envs": 512}}.')
        if self.state is not None and self.state not in get_args(State):
            raise unknown("state", self.state, get_args(State), has="States")

    def fits(self, record: RunRecord) -> bool:
        """Return whether a run matches. The cheapest properties are checked first.

        Raises:
            RlnbError: The run's records cannot be read. An error of a predicate in ``where`` propagates.
        """
        manifest, created = record.manifest, record.created
        if not (
            (self.task is None or manifest.task.id == self.task)
            and (self.library is None or manifest.library == self.library)
            and (self.since is None or created >= self.since)
            and all(_fits(argument(manifest, name), value) for name, value in self.where.items())
        ):
            return False
        try:
            return (
                archived(record.folder.notes) == self.archived
                and (self.tag is None or self.tag in tags_of(record))
                and (self.state is None or record.state == self.state)
            )
        except Exception as exc:  # no error of a damaged record may hide the other runs
            raise RlnbError(f"{record.path} cannot be read: {exc}") from exc

    def check_names(self, records: Collection[RunRecord]) -> None:
        """Check that the library exists and that each name in ``where`` is an argument of ``rlnb.train`` or of a run.

        Raises:
            NotFoundError: One of them is unknown. The message lists the known ones.
        """
        if self.library is not None:
            libraries = {*plugins.libraries(), plugins.SCRIPT.name, *(record.manifest.library for record in records)}
            if self.library not in libraries:
                raise unknown("RL library", self.library, libraries, has="Installed or used by these runs")
        if self.where and (names := {name for record in records for name in arguments_of(record.manifest)}):
            for name in self.where:
                if name not in names | ARGUMENTS:
                    raise unknown("argument", name, names, has="Arguments of these runs")


_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>min|h|d|w)(utes?|ours?|ays?|eeks?)?( ago)?")
"""A time before now, such as ``7d`` or ``2 weeks``."""


def moment(since: str | datetime | timedelta | None) -> datetime | None:
    """Return a point in time, from an ISO 8601 date or time (local without an offset), or a time before now.

    Raises:
        RlnbError: The text is neither.
    """
    if since is None:
        return None
    try:
        if isinstance(since, str) and (match := _AGO.fullmatch(since.strip().lower())):
            since = timedelta(**{_UNITS[match["unit"]]: float(match["number"])})
        if isinstance(since, timedelta):
            return datetime.now().astimezone() - since
        return (since if isinstance(since, datetime) else datetime.fromisoformat(since)).astimezone()
    except (TypeError, ValueError, OverflowError) as exc:
        raise RlnbError(
            f"since={since!r} is not a date. Use one like '2026-11-20' or '2026-11-20T14:30', or a time before now "
            "like '7d', '12h' or '30min'."
        ) from exc


def _fits(value: Any, pattern: Any | Callable[[Any], bool]) -> bool:
    """Return whether a value equals ``pattern``, or satisfies it if it is a predicate."""
    if callable(pattern):
        return value is not None and bool(pattern(value))
    return bool(value == pattern)


# -- find ------------------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)


@cache.collector_paused()
def runs(
    path: str | Path | Sequence[Run | str] | None = None,
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
        path: An rlnb root, a run, or a folder of stock Isaac Lab ``logs/``; None is ``rlnb.options.root``. A list of
            runs, or of their ids, selects from these.
        task: Only runs of this task.
        library: Only runs of this library.
        state: Only runs in this state.
        tag: Only runs with this tag.
        since: Only runs created since then: ``"2026-11-20"``, a datetime, or a time before now: ``"7d"``, ``"12h"``,
            ``"30min"``, a timedelta.
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
    for record in _records(path):
        try:
            if selection.fits(record):
                matches.append(record)
            readable.append(record)
        except (RlnbError, OSError) as exc:  # a damaged record must not hide the other runs
            logger.warning("%s is not listed. %s", record.path, exc)
    selection.check_names(readable)
    matches.sort(key=lambda record: record.manifest.created, reverse=True)
    return Runs([Run.of(record) for record in matches])


def _records(path: str | Path | Sequence[Run | str] | None) -> Iterable[RunRecord]:
    """Return the runs below a folder, or those of a list."""
    if path is None:
        return find(options.folders.path)
    if isinstance(path, Sequence) and not isinstance(path, str):
        return [one.record if isinstance(one, RunFacts) else get_run(one).record for one in path]
    return find(_folder(path))


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
    """Return a run by its id, by a unique part of its id, by its name, or by its folder.

    Raises:
        NotFoundError: No run matches, or several do.
    """
    if not isinstance(id, str | Path):
        raise NotFoundError(f"{id!r} is not the id of a run. Use one that rlnb.runs() lists.")
    return Run.of(find_one(options.folders, str(id)))
