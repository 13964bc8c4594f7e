"""The names of a run's metrics and their newest values, which lists of runs show."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlnb.contracts.libraries import Library
from rlnb.metrics import folders
from rlnb.metrics.series import Span

_OF_TERMS = re.compile(r"(?:^|[/ ])Episode_(?:Reward|Termination)/")
"""Isaac Lab's tags of reward terms and terminations, of which a task may have dozens."""


def _group(tag: str) -> str:
    """Return the part of a tag before its first slash, such as ``"Loss"``."""
    return tag.partition("/")[0].strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class LastPoint:
    """The last point of a curve."""

    tag: str
    folder: str
    """Folder of the event files below the logs, with slashes; empty for the logs themselves."""
    step: int | None
    """None if a restart has removed all points of the curve."""
    value: float


class NewestValues(ABC):
    """The names of metrics, rlnb's (``"reward"``) and the library's own tags, and their newest values."""

    def __init__(self, library: Library | None, spans: Sequence[Span]) -> None:
        """Name the metrics of a run.

        Args:
            library: Library whose tags have names of rlnb; None if there is none.
            spans: How each job of the run counts steps.
        """
        self._tags = dict(library.metrics) if library else {}
        self._former = dict(library.former_metrics) if library else {}
        self._hidden = re.compile("|".join(library.hidden)) if library and library.hidden else None
        self._spans = list(spans)

    @abstractmethod
    def refresh(self) -> int:
        """Read newly logged scalars and return their number."""

    @property
    @abstractmethod
    def _curves(self) -> Mapping[str, folders.Named]:
        """The curves by name, the oldest folder of each tag first."""

    @abstractmethod
    def _newest(self, curve: str) -> tuple[int, float] | None:
        """Return step and value of the last point of a curve; None if a restart has removed all points."""

    @property
    def iteration(self) -> int:
        """The last finished iteration that has logged anything; -1 before the first."""
        self.refresh()
        if not self._spans:
            return -1
        newest = max((point[0] for name in self.tags if (point := self._newest(name))), default=None)
        return -1 if newest is None else int(self._spans[-1].iteration(newest))

    @property
    def names(self) -> list[str]:
        """Logged metrics under rlnb's names, e.g. ``["reward", "fps"]``; raw tags for a script without such names."""
        self.refresh()
        if not self._tags:
            return self.tags
        return [name + folder for name in self._tags for folder in self._folders_of(self._tag(name))]

    def _folders_of(self, tag: str) -> list[str]:
        """Return the ends of the names of a tag's curves, which are empty if one folder has the tag."""
        return [name.removeprefix(tag) for name, curve in self._curves.items() if curve.tag == tag]

    def _tag(self, name: str) -> str:
        """Return the tag of a metric: the library's present one, unless only its former one is logged."""
        tag, former = self._tags.get(name, name), self._former.get(name)
        if former is None or tag in (tags := self.plain_tags):
            return tag
        return former if former in tags else tag

    def _curve(self, name: str) -> str | None:
        """Return the reader's name of a curve; None if nothing was logged under the name."""
        of_folders = [
            self._tag(base) + name[len(base) :]
            for base in (self._tags if name.endswith("]") else ())
            if name.startswith(f"{base} [")
        ]
        found = (folders.find(tag, self._curves) for tag in (*of_folders, self._tag(name)))
        return next((curve for curve in found if curve is not None), None)

    @property
    def plain_tags(self) -> set[str]:
        """Every raw tag, without the folders that a name may have."""
        return {curve.tag for curve in self._curves.values()}

    @property
    def tags(self) -> list[str]:
        """Every raw tag, with its folder if several have it, except tags that repeat another on a different x axis."""
        self.refresh()
        return sorted(
            name for name, curve in self._curves.items() if not (self._hidden and self._hidden.search(curve.tag))
        )

    @property
    def of_task(self) -> list[str]:
        """Tags that the task has logged itself (``extras["log"]``), without its reward terms and terminations.

        Libraries write them beside their own tags. They are those outside of the groups of the library's own tags. The
        success rate, which Isaac Lab's tasks log as ``Metrics/success_rate``, is a metric of rlnb.
        """
        groups = {_group(tag) for tag in (*self._tags.values(), *self._former.values()) if "Metrics/" not in tag}
        mapped = {self._tag(name) for name in self._tags}
        return [
            tag
            for tag in (self.tags if self._tags else ())
            if self._curves[tag].tag not in mapped and _group(tag) not in groups and not _OF_TERMS.search(tag)
        ]

    def last(self, name: str) -> float:
        """Return the newest value of a metric, NaN if there is none, in constant time for any length of curve."""
        self.refresh()
        curve = self._curve(name)
        point = self._newest(curve) if curve is not None else None
        return point[1] if point else float("nan")

    def __contains__(self, name: object) -> bool:
        self.refresh()
        return isinstance(name, str) and self._curve(name) is not None


class LastValues(NewestValues):
    """The same from the last point of each curve, for a run that has ended.

    Args:
        points: The last points, the oldest folder of each tag first.
        library: Library of the run.
        spans: How each job of the run counts steps.
    """

    def __init__(self, points: Sequence[LastPoint], library: Library | None, spans: Sequence[Span]) -> None:
        super().__init__(library, spans)
        self._points = folders.named(points)

    def refresh(self) -> int:
        """Return 0: nothing is logged any more."""
        return 0

    @property
    def _curves(self) -> Mapping[str, LastPoint]:
        return self._points

    def _newest(self, curve: str) -> tuple[int, float] | None:
        point = self._points[curve]
        return None if point.step is None else (point.step, point.value)
