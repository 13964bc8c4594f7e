"""The sections of a report that say what was trained: hyperparameters and source code, and what its parent had."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.display.table import counted, table
from rlnb.errors import RlnbError
from rlnb.records.config import resolved
from rlnb.records.differences import differences
from rlnb.records.facts import RunFacts
from rlnb.records.find import run_of
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.spec import Json

MOST_LINES = 5000
"""Most lines of a difference that are shown."""
SOURCE_BYTES = 200_000
"""Maximum size of all source code of a run in a report. Further files are named."""
_ADDED, _REMOVED = "background:#e6ffec", "background:#ffebe9"


def hyperparameters(runs: Sequence[RunFacts]) -> str:
    """Return every value of each run's agent config as its library got it, and what differs from the run's parent."""
    return "".join(_agent(run) + _changes(run) for run in runs)


def _agent(run: RunFacts) -> str:
    config = {name: value for name, value in resolved(run.record.folder).items() if name.startswith("agent.")}
    if not config:
        return f"<p>{html.escape(run.id)} has written no agent config: {html.escape(run.library)} dumps none.</p>"
    lines = "\n".join(f"{name.removeprefix('agent.')} = {value!r}" for name, value in config.items())
    return _details(f"{run.id}: {counted(len(config), 'hyperparameter')}", f"<pre>{html.escape(lines)}</pre>")


def _changes(run: RunFacts) -> str:
    """Return a table of the arguments and config values that differ from the parent; empty without a parent."""
    parent = parent_of(run)
    if parent is None:
        return _absence(run)
    names = differences([parent, run]).items()
    rows = [[name, _text(values[parent.id]), _text(values[run.id])] for name, values in names]
    return table(["", parent.id, run.id], rows, caption=f"{run.id}: changes since its parent")


def _absence(run: RunFacts) -> str:
    """Return a sentence on a parent that cannot be read; empty for a run without one."""
    if run.manifest.parent is None:
        return ""
    text = f"The first weights of {run.id} come from {run.manifest.parent}, whose run is not here."
    return f"<p>{html.escape(text)}</p>"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else repr(value)


def sources(runs: Sequence[RunFacts]) -> str:
    """Return the source code of each run's task as the run kept it, and its difference to that of the run's parent."""
    return "".join(_source(run) for run in runs)


def _source(run: RunFacts) -> str:
    names = _names(run)
    if not names:
        text = f"{run.id}: the task {run.task} belongs to a package, of whose source a run keeps no copy."
        return f"<p>{html.escape(text)}</p>"
    parts, size = [], 0
    for name in names:
        text = _read(run, name)
        size += len(text.encode())
        content = f"<pre>{html.escape(text)}</pre>" if size <= SOURCE_BYTES else "<p>Not shown: it is too long.</p>"
        parts.append(_details(f"{run.id}: {name}, {counted(text.count(chr(10)), 'line')}", content))
    parent = parent_of(run)
    return "".join(parts) + (_source_changes(run, parent) if parent is not None else "")


def _names(run: RunFacts) -> list[str]:
    """Return the Python files of the run's task, its module first."""
    task = run.manifest.task
    if not task.source:
        return []
    folder, module = run.record.folder.source.resolve(), Path(task.source).name
    others = (name for name in sorted(task.files) if name.endswith(".py") and name != module)
    # A manifest of another user may name any file.
    return [name for name in (module, *others) if files.within(folder, name)]


def _source_changes(run: RunFacts, parent: RunFacts) -> str:
    """Return the unified diff of the task's source from the parent's; a sentence if there is none."""
    lines: list[str] = []
    names = _names(parent)
    renamed = {_names(run)[0]: names[0]} if names else {}  # a module's file may have another name
    for name in _names(run):
        before = renamed.get(name, name)
        old = _read(parent, before).splitlines() if before in names else []
        pair = f"{parent.id}/{before}", f"{run.id}/{name}"
        lines += difflib.unified_diff(old, _read(run, name).splitlines(), *pair, lineterm="")
    if not lines:
        return f"<p>The source is that of its parent {html.escape(parent.id)}.</p>"
    hidden = len(lines) - MOST_LINES
    content = "\n".join(map(_diff_line, lines[:MOST_LINES])) + (f"\n... and {hidden} lines more" if hidden > 0 else "")
    return _details(f"{run.id}: changes of the source since its parent", f"<pre>{content}</pre>", is_open=True)


def _diff_line(line: str) -> str:
    style = _ADDED if line.startswith("+") else _REMOVED if line.startswith("-") else ""
    text = html.escape(line)
    return f"<span style='{style}'>{text}</span>" if style else text


def _read(run: RunFacts, name: str) -> str:
    """Return a file of a run's task as text; a sentence if it cannot be read."""
    path = run.record.folder.source / name
    try:
        with files.open_regular(path) as file:
            return file.read(files.RECORD_BYTES).decode("utf-8", "replace")
    except (OSError, RlnbError) as exc:
        return f"{path} cannot be read: {exc}\n"


def parent_of(run: RunFacts) -> RunFacts | None:
    """Return the run that a run's first weights come from; None if there is none, or if it is not here."""
    for checkpoint in _origins(run):
        if (record := run_of(Path(checkpoint))) is not None and record.id != run.id:
            return RunFacts.of(record)
    return None


def _origins(run: RunFacts) -> Iterator[str]:
    """Yield the checkpoints whose weights the run's trainings started from."""
    for job in run.jobs:
        if job.kind == "train" and isinstance(origin := job.options.get("init_from"), str):
            yield origin


def _details(summary: str, content: str, *, is_open: bool = False) -> str:
    """Return content that opens without JavaScript."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{html.escape(summary)}</summary>{content}</details>"
