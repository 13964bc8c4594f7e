"""Runs side by side: grouped by their arguments, as mean curves with bands and as a table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.curves.figure import select, source
from rlnb.errors import RlnbError, unknown
from rlnb.records.asked import asked
from rlnb.records.evaluation import mean_interval
from rlnb.run.listing import Runs
from rlnb.run.run import Run

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.spec import Json

By = str | Sequence[str] | Callable[[Run], str]


class Groups(Mapping[str, Runs]):
    """Runs by the name of their group; shows itself as one mean curve a group, with its 95 % interval as a band."""

    def __init__(self, groups: Mapping[str, Sequence[Run]], metrics: Sequence[str]) -> None:
        self._groups = {name: Runs(runs) for name, runs in groups.items()}
        self.metrics = tuple(metrics)
        """Names of the metrics that are compared."""

    def __getitem__(self, name: str) -> Runs:
        if name not in self._groups:
            raise unknown("group", name, self._groups, has="There are")
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def table(self) -> pd.DataFrame:
        """Return one row a group: means over its runs of each metric's last value, with 95 % intervals (Student's t).

        Columns ``group``, ``runs``, and for each metric its name, ``<name>_low`` and ``<name>_high``; NaN where no run
        of the group has logged it.
        """
        import pandas as pd

        return pd.DataFrame([self._row(name) for name in self])

    def _row(self, group: str) -> dict[str, str | float]:
        """Return one row of the table, by the column's name."""
        row: dict[str, str | float] = {"group": group, "runs": len(self[group])}
        for metric in self.metrics:
            last = [value for run in self[group] if math.isfinite(value := source(run, metric).last(metric))]
            low, high = mean_interval(last) if last else (math.nan, math.nan)
            mean = statistics.fmean(last) if last else math.nan
            row |= {metric: mean, f"{metric}_low": low, f"{metric}_high": high}
        return row

    def plot(self) -> go.Figure:
        """Return the mean curves over frames."""
        from rlnb.curves.bands import figure
        from rlnb.curves.figure import with_picture

        return with_picture(figure(self, self.metrics))

    def __repr__(self) -> str:
        return f"Groups({', '.join(f'{name}: {len(runs)} runs' for name, runs in self.items())})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Json]:
        from rlnb.curves.figure import mimebundle

        return {**mimebundle(self.plot(), picture=True), "text/plain": f"{self!r}\n{self.table()}"}


def compare(runs: Sequence[Run], metric: str | Sequence[str] = "reward", *, by: By | None = None) -> Groups:
    """Return runs in groups that are compared by their mean curves.

    Args:
        runs: Runs, of one task as a rule.
        metric: One or several, by name or raw tag.
        by: The name of an argument whose value makes a group (``"library"``, ``"num_envs"``, ``"sim.dt"``,
            ``"agent.algorithm.learning_rate"``), several such names, or a function of a run. None groups the runs that
            differ in nothing but their seed.

    Raises:
        NotFoundError: No run was given an argument of that name, or none has logged that metric.
        RlnbError: There is no run.
    """
    if not runs:
        raise RlnbError("There is no run to compare. Start some with rlnb.train(...), or look with rlnb.runs().")
    metrics = select(runs, [metric] if isinstance(metric, str) else list(metric))
    for name in metrics:
        if all(math.isnan(source(run, name).last(name)) for run in runs):
            logged = {tag for run in runs for tag in (*run.metrics.names, *run.metrics.tags, *run.system.tags)}
            raise unknown("metric", name, logged, has="Logged")
    group_of = by if callable(by) else _named(runs, by)
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str(group_of(run)), []).append(run)
    return Groups(groups, metrics)


def _named(runs: Sequence[Run], by: str | Sequence[str] | None) -> Callable[[Run], str]:
    """Return the function that names the group of a run after the arguments that make it."""
    of_runs = {run.path: asked(run.manifest) for run in runs}
    names = dict.fromkeys(name for values in of_runs.values() for name in values)
    if by is None:
        others = [name for name in names if name not in ("seed", "tags")]
        keys = [name for name in others if len({repr(values.get(name)) for values in of_runs.values()}) > 1]
    else:
        keys = [by] if isinstance(by, str) else list(by)
        for key in keys:
            if key not in names:
                raise unknown("argument", key, names, has="Asked of these runs")

    def name(run: Run) -> str:
        values = of_runs[run.path]
        texts = ((key, str(values.get(key, "default"))) for key in keys)
        return ", ".join(text if key in ("task", "library") else f"{key} {text}" for key, text in texts) or run.task

    return name
