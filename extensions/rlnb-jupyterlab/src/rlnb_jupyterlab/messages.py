"""The messages of a page's stream. Their field names match ``ts/server/protocol.ts``."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rlnb_jupyterlab.rows import Row

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A folder with runs."""

    path: str
    trouble: str
    """Why the folder cannot be read; empty if it can be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacesMessage:
    """The folders with runs."""

    type: Literal["places"] = "places"
    places: Sequence[Place]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsMessage:
    """Rows of the list that are new or have changed."""

    type: Literal["runs"] = "runs"
    reset: bool = False
    """Whether the rows are the whole list."""
    rows: Sequence[Row]
    gone: Sequence[str] = ()
    """Keys of runs that no longer exist."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Points:
    """Points of a curve."""

    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvesMessage:
    """New points of a run's curves."""

    type: Literal["curves"] = "curves"
    key: str
    reset: bool
    """Whether earlier points of the run are no longer valid."""
    series: Mapping[str, Points]
    names: Sequence[str] | None = None
    """Further metrics of the run, whose curves a page can request; None if they are those of an earlier message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """New text of a log."""

    type: Literal["log"] = "log"
    key: str
    job: int
    name: str
    text: str
    reset: bool
    """Whether the text is the end of the log, and not the continuation of an earlier message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionMessage:
    """The state of an action."""

    type: Literal["action"] = "action"
    id: str
    action: str
    keys: Sequence[str]
    state: Literal["running", "done", "failed"] = "running"
    output: str = ""
    left: Sequence[str] = ()
    """Keys of the runs that still exist after a deletion."""
    again: bool = False
    """Whether the message repeats an earlier one for a page that has just connected."""


Message: TypeAlias = PlacesMessage | RunsMessage | CurvesMessage | LogMessage | ActionMessage


def encoded(value: object) -> str:
    """Return dataclasses, lists and mappings as JSON. A NaN raises ValueError, since JSON has none."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_fields)


def _fields(value: Any) -> Mapping[str, Json]:
    return {name: getattr(value, name) for name in _names(value.__class__)}


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields."""
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is not JSON. Use a dataclass, a list or a mapping.")
    return tuple(field.name for field in dataclasses.fields(kind))
