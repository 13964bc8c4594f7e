"""Select runs by task, library, state, tag, time and arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, get_args

from rlnb.errors import NotFoundError, RlnbError, refuse_other_than_text, unknown
from rlnb.hooks import plugins
from rlnb.records.asked import ARGUMENTS, argument, asked
from rlnb.records.facts import tags_of
from rlnb.records.notes import archived
from rlnb.records.record import RunRecord
from rlnb.spec import State


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The properties that a run must have; None matches any."""

    task: str | None = None
    library: str | None = None
    state: str | None = None
    tag: str | None = None
    since: datetime | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    """Argument name to its value, or to a predicate on it; names as in :func:`rlnb.records.asked.asked`."""
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
        if self.where and (names := {name for record in records for name in asked(record.manifest)}):
            for name in self.where:
                if name not in names | ARGUMENTS:
                    raise unknown("argument", name, names, has="Arguments of these runs")


def moment(since: str | datetime | timedelta | None) -> datetime | None:
    """Return a point in time, from an ISO 8601 date or time (local without an offset) or a timedelta before now.

    Raises:
        RlnbError: The text is not an ISO 8601 date or time.
    """
    if since is None:
        return None
    if isinstance(since, timedelta):
        return datetime.now().astimezone() - since
    try:
        return (since if isinstance(since, datetime) else datetime.fromisoformat(since)).astimezone()
    except (TypeError, ValueError, OverflowError) as exc:
        raise RlnbError(f"since={since!r} is not a date. Use one like '2026-11-20' or '2026-11-20T14:30'.") from exc


def _fits(value: Any, pattern: Any | Callable[[Any], bool]) -> bool:
    """Return whether a value equals ``pattern``, or satisfies it if it is a predicate."""
    if callable(pattern):
        return value is not None and bool(pattern(value))
    return bool(value == pattern)
