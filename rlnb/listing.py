"""Several runs: a sequence that shows itself as a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.run import Run

if TYPE_CHECKING:
    from rlnb.pruning import Pruning


class Runs(Sequence[Run]):
    """Several runs, newest first."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def table(self) -> Any:
        """Return one row a run as a pandas frame: id, task, library, state, iteration, reward, success, created."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(row) for row in self._rows()])

    def prune(self, *, keep: int = 1, whole: bool = False) -> Pruning:
        """Return what can go of those among these that have ended; nothing is gone before its ``.apply()``.

        Args:
            keep: Checkpoints that stay of each run, the newest, beside the best by reward.
            whole: Whether the runs go whole, records and all.
        """
        from rlnb.pruning import prune

        return prune(self, keep=keep, whole=whole)

    def _rows(self) -> list[RunRow]:
        rows = []
        for run in self._runs:
            done, total = run.progress
            metrics = run.metrics
            rows.append(
                RunRow(
                    id=run.id,
                    task=run.task,
                    library=run.library,
                    state=run.state,
                    iteration=f"{done}/{total}" if total else "",
                    reward=metrics["reward"].last if "reward" in metrics.names else None,
                    success_rate=metrics["success_rate"].last if "success_rate" in metrics.names else None,
                    created=run.created.astimezone().strftime("%Y-%m-%d %H:%M"),
                )
            )
        return rows

    def __repr__(self) -> str:
        return f"Runs({len(self._runs)})"

    def _repr_html_(self) -> str:
        from rlnb.notebook.display import table

        names = [f.name for f in dataclasses.fields(RunRow)]
        rows = [[_text(getattr(row, name)) for name in names] for row in self._rows()]
        return table(names, rows, caption=f"{len(rows)} runs")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """A run in one line."""

    id: str
    task: str
    library: str
    state: str
    iteration: str
    reward: float | None
    success_rate: float | None
    created: str


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
