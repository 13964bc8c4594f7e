"""The lineage of a run as its tab shows it; the names of the fields are those of ``ts/server/protocol.ts``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import rlnb
from rlnb.results import LineageRun
from rlnb_jupyterlab.rows import number, text
from rlnb_jupyterlab.watcher import key_of


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageLine:
    """A run of the tree."""

    key: str
    """Key of the run; empty if it was deleted or moved."""
    title: str
    id: str
    depth: int
    """Generations between the run and the oldest one shown."""
    facts: Sequence[str]
    """How the run has come about, and in what it differs from the run that it is shown below."""
    state: str
    """State of the run; empty if it is gone or cannot be read."""
    reward: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageDetail:
    """The runs that a run comes from, and those that come from it."""

    lines: Sequence[LineageLine]
    """The tree; empty if the run has no history but its training."""
    older: bool
    """Whether there are generations before the oldest one shown."""
    hidden: int
    """Number of later runs that are not shown."""


def lineage(run: rlnb.Run, among: Sequence[rlnb.Run]) -> LineageDetail:
    """Return the lineage of a run among the runs of the list, which lacks archived runs that come from it."""
    found = run.lineage(among)
    lines = [_line(one) for one in found.runs] if found else []
    return LineageDetail(lines=lines, older=found.has_older, hidden=found.hidden)


def _line(one: LineageRun) -> LineageLine:
    return LineageLine(
        key=key_of(rlnb.Run(one.path)) if one.path is not None else "",
        title=text(one.title),
        id=text(one.id),
        depth=one.depth,
        facts=[text(fact) for fact in (one.origin, one.changes_text) if fact],
        state=one.state or "",
        reward=number(one.reward),
    )
