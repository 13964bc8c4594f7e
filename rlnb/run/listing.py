"""A sequence of runs that a notebook shows as a table."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rlnb.display.table import counted, shortened
from rlnb.errors import refuse_other_than_text, unknown
from rlnb.records import notes
from rlnb.records.asked import ARGUMENTS, argument, asked
from rlnb.records.differences import differences
from rlnb.run.row import RunRow, rows_of
from rlnb.run.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from rlnb.run.pruning import Pruning

logger = logging.getLogger(__name__)

SHOWN = 100
"""Most rows that a notebook shows of a list."""
REASON = 80
"""Most characters of a reason that a table shows."""


class Runs(Sequence[Run]):
    """A sequence of runs, newest first."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def table(self, *columns: str) -> pd.DataFrame:
        """Return one row per run: id, task, library, state, reason, iteration, reward, success, created, tags.

        Args:
            columns: Further columns: metrics (their last value) and arguments (``"seed"``, ``"init_from"``,
                ``"sim.dt"``, ``"agent.algorithm.learning_rate"``).

        Raises:
            NotFoundError: None of the runs has such a metric or argument.
        """
        import pandas as pd

        frame = pd.DataFrame([dataclasses.asdict(row) for row in self._rows(len(self))])
        for name in columns:
            frame[name] = self.values(name)
        return frame

    def sorted(self, by: str, *, descending: bool = True) -> Runs:
        """Return the runs sorted by an argument or by a metric's last value; runs without it come last.

        Raises:
            NotFoundError: None of the runs has such a metric or argument.
        """
        values = dict(zip((run.path for run in self), self.values(by), strict=True))
        with_it = [run for run in self if values[run.path] is not None]
        try:
            with_it.sort(key=lambda run: values[run.path], reverse=descending)
        except TypeError:  # values of several types, such as int and str
            with_it.sort(key=lambda run: str(values[run.path]), reverse=descending)
        return Runs([*with_it, *(run for run in self if values[run.path] is None)])

    def values(self, name: str) -> list[Any]:
        """Return an argument, or a metric's last value, of each run; None for a run without it.

        A metric's last value that is nan or infinite is none: such a run is not the best by any metric.

        Raises:
            NotFoundError: None of the runs has such a metric or argument.
        """
        refuse_other_than_text("name", name)
        values = [argument(run.manifest, name) for run in self]
        if all(value is None for value in values) and name not in ARGUMENTS:
            lasts = [_last(run, name) for run in self]
            values = [last if math.isfinite(last) else None for last in lasts]
        if self and all(value is None for value in values) and name not in ARGUMENTS:
            newest = [(run, run.record.newest(run.state)) for run in self]
            names = {name for run, logged in newest for name in (*asked(run.manifest), *logged.names, *logged.tags)}
            raise unknown("metric or argument", name, names, has="There are")
        return values

    def diff(self) -> pd.DataFrame:
        """Return the arguments and resolved config values that differ between the runs, one column per run.

        A cell is empty if its run lacks the name. Paths below the folders of the runs are left out, because they always
        differ, and so are config values that only repeat an argument, such as ``env.seed``.
        """
        import pandas as pd

        return pd.DataFrame.from_dict(differences(self), orient="index", columns=[run.id for run in self])

    def archive(self) -> Archiving:
        """Return the change that leaves these runs out of lists; ``.apply()`` makes it. No file is deleted.

        ``rlnb.runs(archived=True)`` lists the archived runs, and ``.restore()`` reverses the change.
        """
        return Archiving(runs=tuple(self), kind="archive")

    def restore(self) -> Archiving:
        """Return the change that puts archived runs back into lists; ``.apply()`` makes it."""
        return Archiving(runs=tuple(self), kind="restore")

    def prune(self, *, keep: int = 1, whole: bool = False) -> Pruning:
        """Return the files of the ended runs that can be deleted; ``.apply()`` deletes them.

        Args:
            keep: Number of newest checkpoints to keep per run, in addition to the best by reward.
            whole: Whether to delete whole runs, including their records.
        """
        from rlnb.run.pruning import prune

        return prune(self, keep=keep, whole=whole)

    def _rows(self, most: int) -> list[RunRow]:
        return rows_of(self._runs[:most])

    def __repr__(self) -> str:
        return f"Runs({len(self._runs)})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import cell, table

        newest = self._rows(SHOWN)
        names = [f.name for f in dataclasses.fields(RunRow)]
        if not any(row.reason for row in newest):
            names.remove("reason")
        newest = [dataclasses.replace(row, reason=shortened(row.reason, REASON)) for row in newest]
        rows = [[cell(getattr(row, name)) for name in names] for row in newest]
        rest = f", the newest {SHOWN} shown; .table() returns all" if len(self) > SHOWN else ""
        return table(names, rows, caption=f"{counted(len(self), 'run')}{rest}")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Archiving:
    """Runs to archive or to restore; :meth:`apply` makes the change."""

    runs: tuple[Run, ...]
    kind: Literal["archive", "restore"]

    def apply(self) -> Archiving:
        """Archive or restore the runs."""
        for run in self.runs:
            if notes.archived(run.record.folder.notes) != (self.kind == "archive"):
                notes.write(run.record.folder.notes, self.kind)
        return self

    def __repr__(self) -> str:
        ids = ", ".join(run.id for run in self.runs[:5])
        return f"Archiving({self.kind} {counted(len(self.runs), 'run')}: {ids}{', ...' if len(self.runs) > 5 else ''})"


def _last(run: Run, name: str) -> float:
    """Return a metric's last value; NaN if there is none or a damaged record makes it unreadable."""
    try:
        return run.record.newest(run.state).last(name)
    except Exception as exc:
        logger.warning("%s: %s", run.path, exc)
        return math.nan
