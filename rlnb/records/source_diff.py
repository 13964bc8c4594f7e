"""The source of a run's task, and how it differs from that of another run."""

from __future__ import annotations

import difflib
import html
from collections.abc import Sequence
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.records.record import RunRecord
from rlnb.storage import files

MOST_LINES = 5000
"""Most lines of a difference that a page shows."""
_ADDED, _REMOVED = "background:#e6ffec;color:#000", "background:#ffebe9;color:#000"


class SourceDiff:
    """The difference between the sources of two runs' tasks as a unified diff; false if there is none.

    Args:
        lines: Lines of the diff.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return str(self) or "The sources are equal."

    def _repr_html_(self) -> str:
        if not self:
            return "<p>The sources are equal.</p>"
        hidden = len(self.lines) - MOST_LINES
        rest = f"\n... and {hidden} more lines" if hidden > 0 else ""
        return f"<pre>{chr(10).join(map(_coloured, self.lines[:MOST_LINES]))}{rest}</pre>"


def source_diff(before: RunRecord, after: RunRecord) -> SourceDiff:
    """Return the change of the task's source from one run to another.

    A task of a package has no copy of its source in the run's folder, which counts as no source.
    """
    lines: list[str] = []
    old_names, new_names = source_files(before), source_files(after)
    renamed = {new_names[0]: old_names[0]} if old_names and new_names else {}  # a module's file may have another name
    pairs = [(renamed.get(name, name), name) for name in new_names]
    pairs += [(name, name) for name in old_names if name not in dict(pairs)]
    for old_name, name in pairs:
        old = read_source(before, old_name).splitlines() if old_name in old_names else []
        new = read_source(after, name).splitlines() if name in new_names else []
        lines += difflib.unified_diff(old, new, f"{before.id}/{old_name}", f"{after.id}/{name}", lineterm="")
    return SourceDiff(lines)


def source_files(run: RunRecord) -> list[str]:
    """Return the Python files of the run's task, its module first."""
    task = run.manifest.task
    if not task.source:
        return []
    folder, module = run.folder.source.resolve(), Path(task.source).name
    others = (name for name in sorted(task.files) if name.endswith(".py") and name != module)
    # A manifest of another user may name any file.
    return [name for name in (module, *others) if files.within(folder, name)]


def read_source(run: RunRecord, name: str) -> str:
    """Return a file of a run's task as text; a sentence if it cannot be read."""
    path = run.folder.source / name
    try:
        with files.open_regular(path) as file:
            return file.read(files.RECORD_BYTES).decode("utf-8", "replace")
    except (OSError, RlnbError) as exc:
        return f"{path} cannot be read: {exc}\n"


def _coloured(line: str) -> str:
    style = _ADDED if line.startswith("+") else _REMOVED if line.startswith("-") else ""
    text = html.escape(line)
    return f"<span style='{style}'>{text}</span>" if style else text
