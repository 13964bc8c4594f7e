"""The lineage of a run: the runs that it comes from, and those that come from it, as a small tree."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from rlnb.display.table import cell, counted, precise, shortened, table
from rlnb.errors import RlnbError
from rlnb.records.arguments import changed_arguments
from rlnb.records.find import find, open_record
from rlnb.records.layout import RunDir
from rlnb.records.notes import name_of
from rlnb.records.record import JobRecord, RunRecord
from rlnb.records.summary import summaries
from rlnb.spec import Json, Manifest, State
from rlnb.storage import cache, files
from rlnb.storage.access import printable

MOST_ANCESTORS = 10
"""Most generations before a run that its lineage shows."""
MOST_DESCENDANTS = 40
"""Most runs after a run that its lineage shows; the nearest generations come first."""
MOST_TEXT = 120
"""Most characters of a name or a value that a lineage shows."""
MOST_CHANGES = 4
"""Most changed arguments that a line shows."""
GONE = "deleted or moved"
"""The state of a run that is not among the runs."""
_TOLD = ("launcher", "tags")
"""Arguments that say nothing about how a run differs from another one."""
_ID = re.compile(r"\d{8}-\d{6}-.+-[0-9a-f]{4}")
"""Id of a run that rlnb made, which is recognised in a path also if the run is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageRun:
    """A run in the lineage of a run."""

    id: str
    name: str = ""
    """The run's name; empty without one."""
    path: Path | None = None
    """The run's folder; None if it was deleted or moved."""
    depth: int = 0
    """Generations between the run and the oldest one shown."""
    origin: str = ""
    """How the run has come about, such as ``"repeat, initialised with model_399.pt, resumed from iteration 400"``."""
    changes: Mapping[str, Json] = field(default_factory=dict)
    """Arguments in which the run differs from the one that it is shown below; None for a default."""
    state: State | None = None
    """State of the training; None if the run was deleted, moved, or cannot be read."""
    reward: float | None = None
    """Last value; None if there is none."""

    @property
    def title(self) -> str:
        """The run's name, or its id without one, in one line."""
        return self.name or _text(self.id)

    @property
    def changes_text(self) -> str:
        """The changes in a few words, such as ``"seed 2, learning_rate 0.0001"``."""
        texts = [f"{_text(name.rpartition('.')[2])} {_value(value)}" for name, value in self.changes.items()]
        rest = [f"{len(texts) - MOST_CHANGES} more"] if len(texts) > MOST_CHANGES else []
        return ", ".join([*texts[:MOST_CHANGES], *rest])

    @property
    def status(self) -> str:
        """The state in words."""
        return self.state or (GONE if self.path is None else "cannot be read")


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """The runs that a run comes from, and those that come from it. False if the run has no history but its training.

    A notebook shows a table, and a terminal a tree.
    """

    id: str
    """Id of the run."""
    runs: tuple[LineageRun, ...]
    """The run and its relatives, each below the run that it comes from."""
    parents: tuple[str, ...] = ()
    """Ids of the runs that the run comes from."""
    children: tuple[str, ...] = ()
    """Ids of the runs that come from the run."""
    has_older: bool = False
    """Whether there are generations before the oldest one shown."""
    hidden: int = 0
    """Number of later runs that are not shown."""
    resumed: bool = False
    """Whether a training of the run was resumed."""

    def __bool__(self) -> bool:
        return len(self.runs) > 1 or self.resumed

    def __repr__(self) -> str:
        lines = ["... older runs"] if self.has_older else []
        for prefix, run in self._tree():
            reward = f"reward {precise(run.reward)}" if run.reward is not None else ""
            facts = ", ".join(filter(None, (run.origin, run.changes_text, run.status, reward)))
            lines.append(f"{prefix}{run.title}: {facts}{self._mark(run)}")
        return "\n".join([*lines, *self._rest()])

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{prefix.replace(' ', chr(0xA0))}{run.title}{self._mark(run)}",
                run.origin,
                run.changes_text,
                run.status,
                cell(run.reward),
            ]
            for prefix, run in self._tree()
        ]
        notes = ", ".join([*(["older runs are not shown"] if self.has_older else []), *self._rest()])
        return table(
            ["run", "origin", "changes", "state", "reward"],
            rows,
            caption=f"Lineage of {self.id}{notes and f' ({notes})'}",
        )

    def _mark(self, run: LineageRun) -> str:
        return "  ← this run" if run.id == self.id else ""

    def _rest(self) -> list[str]:
        return [f"... and {counted(self.hidden, 'more later run')}"] if self.hidden else []

    def _tree(self) -> Iterator[tuple[str, LineageRun]]:
        """Yield each run with the branches before it."""
        open_at: set[int] = set()  # depths at which a later run hangs on the same branch
        lines: list[tuple[str, LineageRun]] = []
        for run in reversed(self.runs):
            branches = "".join("│  " if depth in open_at else "   " for depth in range(1, run.depth))
            end = "" if not run.depth else "├─ " if run.depth in open_at else "└─ "
            open_at = {depth for depth in open_at if depth < run.depth} | {run.depth}
            lines.append((branches + end, run))
        yield from reversed(lines)


# -- what the manifests say ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Link:
    """One origin of a run."""

    run: str
    """Id of the run that it comes from; empty for a file that belongs to no run."""
    what: str
    """``"repeat"``, ``"initialised with model_399.pt"``, or the file of an input."""
    role: str = ""
    """Name of the input."""
    copy: RunDir | None = None
    """Where the run may have a copy of the other run's manifest."""

    def text(self, title: str = "") -> str:
        """Return the origin in words.

        Args:
            title: Name of the run; empty if it is clear.
        """
        return f"{self.what}{f' of {title}' if title else ''}{f' as {self.role}' if self.role else ''}"


def _links(
    manifest: Manifest, folder: RunDir | None, known: Mapping[str, RunRecord], checkpoint: str = ""
) -> list[_Link]:
    """Return the origins of a run; the one that a tree shows it below comes first.

    Args:
        manifest: Manifest of the run.
        folder: Folder of the run; None if it is gone.
        known: All runs by their ids.
        checkpoint: File whose weights the first training started from; empty if it is unknown.
    """
    links = [_Link(run=manifest.like, what="repeat", copy=folder and folder.like)] if manifest.like else []
    if manifest.parent:
        run = _run_in(manifest.parent, known)
        name = PurePath(checkpoint or (manifest.parent if run != manifest.parent else "")).name
        links.append(_Link(run=run, what=f"initialised with {_text(name or 'weights' if run else manifest.parent)}"))
    for name, origin in manifest.inputs.items():
        run = _run_in(origin, known) or ("" if os.path.isabs(origin) else origin.partition("/")[0])
        copy = folder.input_run(name) if folder and PurePath(name).name == name else None
        links.append(_Link(run=run, what=_text(PurePath(origin).name), role=_text(name), copy=copy))
    return links


def _run_in(origin: str, known: Mapping[str, RunRecord]) -> str:
    """Return the id of the run in an origin, which is an id or a path; empty if it names none."""
    parts = [origin, *PurePath(origin).parts]
    if named := next((part for part in parts if _ID.fullmatch(part)), ""):
        return named
    # Runs of stock Isaac Lab that were started in the same second have the same id.
    path = PurePath(origin)
    inside = (part for part in parts if part in known and (part == origin or path.is_relative_to(known[part].path)))
    return next(inside, "")


def _text(text: str) -> str:
    """Return text of a record, which another user may have written, for one line."""
    return shortened(printable(text, 2 * MOST_TEXT), MOST_TEXT)


def _value(value: Json) -> str:
    return "default" if value is None else _text(cell(value))


def _trainings(record: RunRecord) -> list[JobRecord]:
    return [job for job in record.jobs if job.kind == "train"]


def _first_weights(record: RunRecord) -> str:
    """Return the checkpoint that a run's first training started from; empty if it started from fresh weights."""
    trainings = _trainings(record)
    return str(trainings[0].options.get("init_from") or "") if trainings else ""


def _resumptions(record: RunRecord) -> Iterator[str]:
    """Yield from where the run was restarted after interruptions, and from where it was resumed."""
    later = _trainings(record)[1:]
    for verb, jobs in (
        ("restarted", [job for job in later if job.restart]),
        ("resumed", [job for job in later if not job.restart]),
    ):
        if jobs:
            started = jobs[-1].started
            checkpoint = PurePath(str(jobs[-1].options.get("checkpoint") or "the start")).name
            place = f"iteration {started.first_iteration}" if started else _text(checkpoint)
            yield f"{verb} from {place}" if len(jobs) == 1 else f"{verb} {len(jobs)} times, last from {place}"


def _trial(manifest: Manifest) -> str:
    """Return the trial of a sweep that a run is, in words; empty if it is none."""
    tags = dict(str(tag).partition(":")[::2] for tag in manifest.tags)
    return f"trial {_text(tags['trial'])} of the sweep {_text(tags['sweep'])}" if {"sweep", "trial"} <= {*tags} else ""


# -- the tree --------------------------------------------------------------------------------------------------------


class _Runs:
    """The runs of a folder, and what each comes from."""

    def __init__(self, record: RunRecord, records: Sequence[RunRecord]) -> None:
        self.records = {one.id: one for one in (*records, record)}
        self._manifests: dict[str, Manifest] = {}
        for id, one in self.records.items():
            with contextlib.suppress(RlnbError, OSError):  # a damaged record must not hide the other runs
                self._manifests[id] = one.manifest
        self.children: dict[str, list[str]] = {}
        for id in sorted(self._manifests, key=lambda id: self._manifests[id].created):
            for link in self.links(id):
                self.children.setdefault(link.run, []).append(id)

    def manifest(self, id: str) -> Manifest | None:
        """Return the manifest of a run, or the copy in a run that comes from it; None if there is none."""
        return self._manifests.get(id)

    def links(self, id: str, checkpoint: str = "") -> list[_Link]:
        """Return the origins of a run; none if the run cannot be read."""
        manifest = self._manifests.get(id)
        if manifest is None:
            return []
        folder = self.records[id].folder if id in self.records else None
        return [link for link in _links(manifest, folder, self.records, checkpoint) if link.run != id]

    def look_up(self, link: _Link, beside: Path) -> None:
        """Read the manifest of a run that is not in the list: an archived run, or the copy of a deleted one.

        Args:
            link: What names the run.
            beside: Folder of a run of the same folder.
        """
        folder = beside.parent / link.run
        if link.run in ("", "..") or link.run in self._manifests or PurePath(link.run).name != link.run:
            return
        with contextlib.suppress(RlnbError, OSError, ValueError):
            if files.there(RunDir(folder).manifest) and not folder.is_symlink():
                self.records[link.run] = record = open_record(folder)
                self._manifests[link.run] = record.manifest
            elif link.copy is not None and files.there(link.copy.manifest):
                self._manifests[link.run] = RunRecord(link.copy.path).manifest

    def name(self, id: str) -> str:
        """Return the name of a run; empty without one."""
        manifest = self.manifest(id)
        with contextlib.suppress(RlnbError, OSError):
            if manifest is not None:
                first = str(manifest.name)
                return _text(name_of(self.records[id].folder.notes, first) if id in self.records else first)
        return ""

    def ancestors(self, id: str, beside: Path) -> Iterator[str]:
        """Yield the runs that a run comes from, the nearest first; of several origins, the first one goes on."""
        seen = {id}
        while True:
            links = self.links(id)
            for link in links:
                self.look_up(link, beside)
            id = next((link.run for link in links if link.run and link.run not in seen), "")
            if not id:
                return
            seen.add(id)
            yield id

    def descendants(self, id: str, seen: set[str]) -> Mapping[str, str]:
        """Return the runs that come from a run, the nearest generation first, each with the run it is shown below."""
        above: dict[str, str] = {}
        waiting = deque([id])
        while waiting:
            for child in self.children.get(waiting.popleft(), ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
                    above[child] = next(link.run for link in self.links(child) if link.run == id or link.run in above)
        return above


@cache.collector_paused()
def lineage_of(record: RunRecord, records: Sequence[RunRecord] | None = None) -> Lineage:
    """Return the lineage of a run.

    Args:
        record: The run.
        records: Runs among which to look for those that come from it; None is all runs of the same folder.
    """
    place = record.path.parent
    runs = _Runs(record, [*find(place.parent if place.name == "runs" else place)] if records is None else records)
    before, older = list[str](), runs.ancestors(record.id, record.path)
    while len(before) < MOST_ANCESTORS and (id := next(older, "")):
        before.append(id)
    origins = dict.fromkeys(link.run for link in runs.links(record.id) if link.run)
    others = [id for id in origins if id not in before]
    above = runs.descendants(record.id, {record.id, *before, *others})
    shown = dict([*above.items()][:MOST_DESCENDANTS])
    chain = [*reversed(before), record.id]
    above_of = {**dict(itertools.pairwise(reversed(chain))), **shown}
    lines = [*[(id, 0) for id in others], *_in_order(chain[0], above_of)]
    return Lineage(
        id=record.id,
        runs=tuple(_line(runs, id, above_of.get(id, ""), depth) for id, depth in lines),
        parents=tuple(origins),
        children=tuple(dict.fromkeys(runs.children.get(record.id, ()))),
        has_older=bool(next(older, "")),
        hidden=len(above) - len(shown),
        resumed=len(_trainings(record)) > 1,
    )


def _in_order(first: str, above: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield a run and those below it with their depths, each after the run that it is shown below."""
    below: dict[str, list[str]] = {}
    for child, parent in above.items():
        below.setdefault(parent, []).append(child)
    waiting = [(first, 0)]
    while waiting:
        id, depth = waiting.pop()
        yield id, depth
        waiting += [(child, depth + 1) for child in reversed(below.get(id, ()))]


def _line(runs: _Runs, id: str, parent: str, depth: int) -> LineageRun:
    """Return a run as a line.

    Args:
        runs: All runs.
        id: Id of the run.
        parent: Id of the run that it is shown below; empty for none.
        depth: Generations between the run and the oldest one shown.
    """
    now, then, record = runs.manifest(id), runs.manifest(parent), runs.records.get(id)
    state, reward, checkpoint, further = None, None, "", list[str]()
    with contextlib.suppress(Exception):  # no error of a damaged record may hide the other runs
        further += [_trial(now)] if now is not None else []
        if record is not None:
            fresh = next(find(record.path))  # another thread may read the record of a list
            (summary,) = summaries([fresh])
            state, reward, checkpoint = summary.state, summary.reward, _first_weights(fresh)
            further += _resumptions(fresh)
    texts = [
        link.text(_text(runs.name(link.run) or link.run) if link.run not in ("", parent) else "")
        for link in runs.links(id, checkpoint)
    ]
    changes = changed_arguments(then, now) if now is not None and then is not None else {}
    return LineageRun(
        id=id,
        name=runs.name(id),
        path=record.path if record is not None else None,
        depth=depth,
        origin=", ".join(filter(None, [*texts, *further])),
        changes={name: value for name, value in changes.items() if _tells(name, value)},
        state=state,
        reward=reward,
    )


def _tells(name: str, value: Json) -> bool:
    """Return whether a changed argument says anything that the origin of its run does not."""
    return name not in _TOLD and (value is None or not (name == "init_from" or name.startswith("inputs.")))
