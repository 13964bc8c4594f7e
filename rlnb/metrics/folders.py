"""One curve from the event files of a folder, and the names of curves.

As in TensorBoard, a folder is a run, so the same tag in two folders is two curves. Within a folder, the files follow
each other. A later file replaces the points from its first step on, since it belongs to a restarted training. So does a
step below the one before. Equal steps within a file are kept, as several axes in one file need them. The data server of
TensorBoard has this rule and also replaces equal steps
(https://github.com/tensorflow/tensorboard/blob/master/tensorboard/data/server/reservoir.rs).

The start of a session (``SessionLog.START``, which ``SummaryWriter(purge_step=...)`` writes) replaces the points of all
tags from its step on. The readers of TensorBoard differ here: the data server ignores it, and the Python reader passes
over the first one of a folder. Here each one counts, since a writer that names the step asks for exactly that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from rlnb.metrics.columns import Column, Columns

if TYPE_CHECKING:
    import numpy as np

_OF_FOLDER = re.compile(r"^(?P<tag>.*) \[.*/\]$", re.DOTALL)
_LAST = (1 << 63) - 1
_Size = tuple[int, tuple[object, ...]]
"""Number of points of a tag in a file, and the restarts that it announces."""


class EventFile(Protocol):
    """An event file that was read."""

    folder: str
    scalars: Columns
    tail: Columns
    restart: int | None
    """Smallest step of a restart that the file announces; None if it announces none."""


class Named(Protocol):
    """A curve that has a name."""

    @property
    def tag(self) -> str: ...
    @property
    def folder(self) -> str: ...


C = TypeVar("C", bound=Named)


@dataclass(slots=True)
class Curve:
    """One tag of one folder."""

    tag: str
    folder: str
    """Folder below that of the reader, with slashes; empty for the reader's own folder."""
    files: list[EventFile]
    """The event files of the folder, in order."""
    by_time: bool = False
    """Whether the points are in order of time and none replaces another, as measures of a machine are."""
    column: Column = field(default_factory=Column)
    """The points of the curve, in order."""
    _sizes: dict[int, _Size] = field(default_factory=dict)
    """The size of each file at the last update, in order."""

    def update(self) -> bool:
        """Take over what the files have; return whether points that were there before have changed or are gone."""
        sizes = {
            id(file): self._size(file) for file in self.files if self.tag in file.scalars or file.restart is not None
        }
        before, self._sizes = self._sizes, sizes
        if [*sizes.items()] == [*before.items()]:
            return False
        parts = [(file.scalars.get(self.tag, Column()), file.restart) for file in self.files if id(file) in sizes]
        shared = next((id(file) for file in self.files if file.scalars.get(self.tag) is self.column), None)
        count = len(self.column) if shared is None else before[shared][0]
        if self._grows(parts, before):
            return False
        old = tuple(part[:count].tobytes() for part in self.column.arrays())
        self.column = Column.of(in_order_of_time(parts) if self.by_time else without_replaced(parts))
        return old != tuple(part[:count].tobytes() for part in self.column.arrays())

    def _size(self, file: EventFile) -> _Size:
        column = file.scalars.get(self.tag)
        if column is None:
            return 0, (0, None, file.restart)
        return len(column), (len(column.restarts), column.restarts[-1] if column.restarts else None, file.restart)

    def ahead(self) -> Column:
        """Return the newest points, which were read ahead of unread older ones."""
        newest = Column()
        for file in self.files:
            if self.tag in file.tail:
                newest.extend(file.tail[self.tag])
        return newest

    def _grows(self, parts: Sequence[tuple[Column, int | None]], before: dict[int, _Size]) -> bool:
        """Append the new points of the newest file, if nothing else has changed; return whether that was so."""
        (*earlier, (newest, size)), column = self._sizes.items(), parts[-1][0]
        known = before.get(newest, (0, (0, None, None)))
        if known[1] != size[1] or [item for item in before.items() if item[0] != newest] != earlier:
            return False
        if earlier and not known[0]:  # the first point of a file may replace others
            return False
        steps, times, _ = column.arrays(max(known[0] - 1, 0))
        axis = times if self.by_time else steps
        if (axis[1:] < axis[:-1]).any():
            return False
        if not known[0]:
            self.column = column  # the usual case needs no copy
        elif self.column is not column:
            if self.by_time and len(self.column) and times[1] < self.column[-1][1]:  # a point of an earlier file
                return False
            self.column.extend(column, known[0])
        return True


def without_replaced(
    parts: Sequence[tuple[Column, int | None]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps, wall times and values of the points that no restart has replaced, in order.

    Args:
        parts: The columns of one tag in the order of their files, and the step of a restart that the file announces.
    """
    import numpy as np

    steps, times, values = (
        np.concatenate(part) for part in zip(*(column.arrays() for column, _ in parts), strict=True)
    )
    # A mark at an index replaces all points before it from its step on. There is one after the last point.
    marks = np.full(len(steps) + 1, _LAST)
    begin = 0
    for column, restart in parts:
        first = steps[begin] if len(column) else _LAST
        marks[begin] = min(marks[begin], first, _LAST if restart is None else restart)
        for index, step in column.restarts:
            marks[begin + index] = min(marks[begin + index], step)
        begin += len(column)
    back = np.flatnonzero(steps[1:] < steps[:-1]) + 1
    marks[back] = np.minimum(marks[back], steps[back])
    first_later = np.minimum.accumulate(marks[::-1])[::-1][1:]
    kept = (steps < first_later) | (first_later == _LAST)
    return steps[kept], times[kept], values[kept]


def in_order_of_time(
    parts: Sequence[tuple[Column, int | None]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps, wall times and values of all points, in order of time; the arguments are as above."""
    import numpy as np

    steps, times, values = (
        np.concatenate(part) for part in zip(*(column.arrays() for column, _ in parts), strict=True)
    )
    order = np.argsort(times, kind="stable")
    return steps[order], times[order], values[order]


def curves_of(files: Iterable[EventFile], known: Iterable[Curve] = (), *, by_time: bool = False) -> dict[str, Curve]:
    """Return the curves of event files by name.

    The name of a curve is its tag if one folder has the tag, else ``"<tag> [<folder>/]"``. No tag can be mistaken for
    such a name, since a tag of this form always gets the folder as well.

    Args:
        files: The event files, in order.
        known: Curves of earlier calls, which keep their points.
        by_time: See :class:`Curve`.
    """
    earlier = {(curve.tag, curve.folder): curve for curve in known}
    curves: dict[tuple[str, str], Curve] = {}
    of_folders: dict[str, list[EventFile]] = {}
    for file in files:
        of_folders.setdefault(file.folder, []).append(file)
        for tag in dict.fromkeys((*file.scalars, *file.tail)):
            curve = earlier.get((tag, file.folder)) or Curve(tag, file.folder, [], by_time)
            curve.files = of_folders[file.folder]
            curves.setdefault((tag, file.folder), curve)
    return named(curves.values())


def named(curves: Iterable[C]) -> dict[str, C]:
    """Return curves by name; see :func:`curves_of`. Those of one tag follow each other, in their order."""
    of_tags: dict[str, dict[str, C]] = {}
    for curve in curves:
        of_tags.setdefault(curve.tag, {}).setdefault(curve.folder, curve)
    return {
        name_of(tag, folder) if len(of_folders) > 1 or ambiguous(tag) else tag: curve
        for tag, of_folders in of_tags.items()
        for folder, curve in of_folders.items()
    }


def name_of(tag: str, folder: str) -> str:
    """Return the name of a curve whose tag is in several folders, such as ``"loss [train/]"``."""
    return f"{tag} [{_shown(folder)}/]"


def _shown(folder: str) -> str:
    """Return a folder as names have it: what cannot be shown is escaped, so that two folders never look the same."""
    return "".join(
        one if one.isprintable() and one != "\\" else one.encode("unicode_escape").decode() for one in folder or "."
    )


def ambiguous(tag: str) -> bool:
    """Return whether a tag has the form of a name with a folder."""
    return _OF_FOLDER.match(tag) is not None


def split(name: str) -> tuple[str, str]:
    """Return the part of a name before its folder, and the rest, which is empty for a name without one.

    The folder may have brackets of its own, as in ``"loss [trial [2]/]"``.
    """
    begin = len(name)
    while ambiguous(name) and (begin := name.rfind(" [", 0, begin)) > 0:
        if name.count("[", begin) >= name.count("]", begin):
            return name[:begin], name[begin:]
    match = _OF_FOLDER.match(name)  # the brackets of the folder are not in pairs
    return (match["tag"], name[len(match["tag"]) :]) if match else (name, "")


def find(name: str, curves: Mapping[str, Named]) -> str | None:
    """Return the full name of a curve; None if there is none.

    A tag in several folders stands for the folder that had it first, so that the curve stays the same when another
    folder follows. A folder may be named by its last parts.

    Args:
        name: A name, or a tag, or a tag with a folder.
        curves: The curves by name, the oldest folder of each tag first.
    """
    if name in curves:
        return name
    if (plain := next((key for key, curve in curves.items() if curve.tag == name), None)) is not None:
        return plain
    found = [key for key, curve in curves.items() if _names(name, curve)]
    return found[0] if len(found) == 1 else None


def _names(name: str, curve: Named) -> bool:
    """Return whether a name is that of a curve with the last parts of its folder."""
    if not (name.startswith(f"{curve.tag} [") and name.endswith("]")):
        return False
    folder = name[len(curve.tag) + 2 : -1].removesuffix("/")
    return f"/{_shown(curve.folder)}".endswith(f"/{folder}")
