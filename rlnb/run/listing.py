"""A sequence of runs that a notebook shows as a table."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rlnb.display.table import cell, counted, shortened, table
from rlnb.errors import RlnbError, RunError, refuse_other_than_text, unknown
from rlnb.records import notes
from rlnb.records.arguments import ARGUMENTS, argument, arguments_of
from rlnb.records.facts import differences
from rlnb.records.summary import summaries
from rlnb.run.guesses import GuidedRuns
from rlnb.run.run import Run
from rlnb.run.waiting import wait_for

if TYPE_CHECKING:
    import pandas as pd

    from rlnb.accounting.goodput import Goodput
    from rlnb.curves.tensorboard import TensorBoard
    from rlnb.records.summary import RunSummary
    from rlnb.run.pruning import Pruning

logger = logging.getLogger(__name__)

SHOWN = 100
"""Most rows that a notebook shows of a list."""
REASON = 80
"""Most characters of a reason that a table shows."""
SPARSE = ("name", "reason")
"""Columns that are left out if they are empty."""


class Runs(GuidedRuns, Sequence[Run]):
    """A sequence of runs, newest first."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def table(self, *columns: str) -> pd.DataFrame:
        """Return one row per run: id, name, task, library, state, reason, iteration, reward, success, created, tags.

        Args:
            columns: Further columns: metrics (their last value) and arguments (``"seed"``, ``"init_from"``,
                ``"sim.dt"``, ``"agent.algorithm.learning_rate"``).

        Raises:
            NotFoundError: None of the runs has such a metric or argument.
        """
        import pandas as pd

        frame = pd.DataFrame([summary.row() for summary in self.summaries()])
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
            names = {
                name for run, logged in newest for name in (*arguments_of(run.manifest), *logged.names, *logged.tags)
            }
            raise unknown("metric or argument", name, names, has="There are")
        return values

    def best(self, metric: str = "reward", *, descending: bool = True) -> Run:
        """Return the run with the best last value of a metric, or of an argument.

        Args:
            metric: Name of the metric, as for :meth:`sorted`.
            descending: Whether the largest value is the best. Pass False for a loss.

        Raises:
            NotFoundError: None of the runs has such a metric or argument.
            RlnbError: There is no run with a value.
        """
        values = dict(zip((run.path for run in self), self.values(metric), strict=True))
        best = next((run for run in self.sorted(metric, descending=descending) if values[run.path] is not None), None)
        if best is None:
            raise RlnbError(f"None of {counted(len(self), 'run')} has a value of {metric!r} yet.")
        return best

    def wait(self, timeout_s: float | None = None, *, check: bool = False) -> Runs:
        """Wait for all trainings to end, and show their progress. An interrupt ends the wait, never a run.

        Args:
            timeout_s: Seconds to wait; None waits for as long as it takes.
            check: Whether to raise if a training was cancelled.

        Raises:
            RunError: A training failed, was lost, reached its walltime, or was cancelled and ``check`` is True. It is
                raised once all trainings have ended, and its notes name the other runs that did not complete.
            TimeoutError: A training has not ended after ``timeout_s`` seconds; it continues.
        """
        wait_for(self._runs, timeout_s)
        errors = list[RunError]()
        for run in self:
            try:
                run.raise_unless_completed(check=check)
            except RunError as exc:
                errors.append(exc)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(str(other).partition("\n")[0])
            raise errors[0]
        return self

    def watch(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Show live curves until the runs end; see :func:`rlnb.watch`."""
        from rlnb.curves.live import watch

        return watch(self, metrics=metrics, x=x)

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

    def goodput(self) -> Goodput:
        """Return where the time of the runs went, what interrupted them, and what they cost, from their records alone.

        Each second of a run's wall time is waiting, starting, useful, lost, checkpointing, restarting or idle. Runs of
        stock Isaac Lab have no records of their jobs and are left out. The runs may still train.
        ``rlnb.Runs(study.runs.values())`` takes the runs of a study.
        """
        from rlnb.accounting.goodput import goodput

        return goodput(self)

    def tensorboard(self, *, reload_s: float = 5.0) -> TensorBoard:
        """Show TensorBoard for the event files of the runs, in the output of the cell and behind a link.

        TensorBoard reads the files that the library wrote and those with the use of the nodes (``logs/system``). The
        browser reaches TensorBoard through the Jupyter server (jupyter-server-proxy) at any base URL.

        Args:
            reload_s: Seconds between two reads of the files.

        Raises:
            RlnbError: There is no run, or TensorBoard does not start. The error contains its last lines of output.
        """
        from rlnb.curves.tensorboard import tensorboard

        return tensorboard(self, reload_s=reload_s)

    def summaries(self) -> list[RunSummary]:
        """Return what a list shows of each run: state, reason, progress, time left, last values."""
        return summaries([run.record for run in self])

    def __repr__(self) -> str:
        return f"Runs({len(self._runs)})"

    def _repr_html_(self) -> str:
        rows = [summary.row() for summary in self[:SHOWN].summaries()]
        names = [name for name in (rows[0] if rows else ()) if name not in SPARSE or any(row[name] for row in rows)]
        cells = [
            [cell(shortened(row[name], REASON) if name == "reason" else row[name]) for name in names] for row in rows
        ]
        rest = f", the newest {SHOWN} shown; .table() returns all" if len(self) > SHOWN else ""
        return table(names, cells, caption=f"{counted(len(self), 'run')}{rest}")


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
