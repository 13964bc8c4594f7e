"""The selection of runs by what is known of them: task, library, state, tag, time, arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, get_args

from rlnb import plugins
from rlnb.errors import RlnbError, unknown
from rlnb.records.asked import asked
from rlnb.records.facts import tags_of
from rlnb.records.notes import archived
from rlnb.records.record import RunRecord
from rlnb.spec import State


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The properties that a run has to have; None takes any."""

    task: str | None = None
    library: str | None = None
    state: str | None = None
    tag: str | None = None
    since: datetime | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    """Value, or test of a value, by name; the names are those of :func:`rlnb.records.asked.asked`."""
    archived: bool = False
    """Whether the archived runs are meant; else they are left out."""

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in get_args(State):
            raise unknown("state", self.state, get_args(State), has="States")

    def fits(self, record: RunRecord) -> bool:
        """Return whether a run is meant; what costs least to know is asked first.

        Raises:
            RlnbError: Its records cannot be read. An error of a test in ``where`` passes through.
        """
        manifest, created = record.manifest, record.created
        if not (
            (self.task is None or manifest.task.id == self.task)
            and (self.library is None or manifest.library == self.library)
            and (self.since is None or created >= self.since)
            and all(_fits(asked(manifest).get(name), value) for name, value in self.where.items())
        ):
            return False
        try:
            return (
                archived(record.folder.notes) == self.archived
                and (self.tag is None or self.tag in tags_of(record))
                and (self.state is None or record.state == self.state)
            )
        except Exception as exc:  # whatever an odd record brings about must not hide the other runs
            raise RlnbError(f"{record.path} cannot be read: {exc}") from exc

    def check_names(self, records: Collection[RunRecord]) -> None:
        """Make sure that the library is one, and that each name in ``where`` was ever asked of a run.

        Raises:
            NotFoundError: It is none, or was not; with those that are.
        """
        if self.library is not None:
            libraries = {*plugins.libraries(), plugins.SCRIPT.name, *(record.manifest.library for record in records)}
            if self.library not in libraries:
                raise unknown("RL library", self.library, libraries, has="Installed, or of these runs")
        if self.where and (names := {name for record in records for name in asked(record.manifest)}):
            for name in self.where:
                if name not in names:
                    raise unknown("argument", name, names, has="Asked of these runs")


def moment(since: str | datetime | timedelta | None) -> datetime | None:
    """Return a point in time: a date or time as ISO 8601 (local unless it says otherwise), or so long ago.

    Raises:
        RlnbError: It is none.
    """
    if since is None:
        return None
    if isinstance(since, timedelta):
        return datetime.now().astimezone() - since
    try:
        return (datetime.fromisoformat(since) if isinstance(since, str) else since).astimezone()
    except ValueError as exc:
        raise RlnbError(f"since={since!r} is no date. Give one as '2026-11-20' or '2026-11-20T14:30'.") from exc


def _fits(value: Any, pattern: Any | Callable[[Any], bool]) -> bool:
    """Return whether a value is the one that is looked for, or passes the test that is."""
    if callable(pattern):
        return value is not None and bool(pattern(value))
    return bool(value == pattern)
