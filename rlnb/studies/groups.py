"""Compare runs: grouped by their arguments, as mean curves with bands and as a table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.curves.figure import bands_figure, select, source
from rlnb.display.table import counted
from rlnb.errors import RlnbError, unknown
from rlnb.records.arguments import SYNONYMS, arguments_of, shared_arguments
from rlnb.records.evaluation import mean_interval
from rlnb.run.listing import Runs
from rlnb.run.run import Run

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.spec import Json

By = str | Sequence[str] | Callable[[Run], str]
"""Names of arguments, or a function of a run that returns the name of its group."""


class Groups(Mapping[str, Runs]):
    """Groups of runs, a mapping from the name of a group to its runs. Returned by :func:`rlnb.compare`.

    A notebook shows one mean curve per group, with the 95 % interval as a band.

    Args:
        groups: Runs by the name of their group.
        metrics: Names of the metrics to compare.
    """

    def __init__(self, groups: Mapping[str, Sequence[Run]], metrics: Sequence[str]) -> None:
        self._groups = {name: Runs(runs) for name, runs in groups.items()}
        self.metrics = tuple(metrics)
        """Names of the metrics to compare."""

    def __getitem__(self, name: str) -> Runs:
        if name not in self._groups:
            raise unknown("group", name, self._groups, has="There are")
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def table(self) -> pd.DataFrame:
        """Return one row per group: the mean of each metric's last value over the runs, with its 95 % interval.

        A group has no finite mean if the last value of one of its runs is nan or infinite: without that run, the others
        would look like all of them. The intervals are Student's t. The columns are ``group``, ``runs``, and for each
        metric ``<name>``, ``<name>_low`` and ``<name>_high``. The interval is NaN if fewer than two runs of the group
        have logged the metric.
        """
        import pandas as pd

        return pd.DataFrame([self._row(name) for name in self])

    def _row(self, group: str) -> dict[str, str | float]:
        """Return one row of the table, by column name."""
        row: dict[str, str | float] = {"group": group, "runs": len(self[group])}
        for metric in self.metrics:
            last = [source(run, metric).last(metric) for run in self[group] if metric in source(run, metric)]
            low, high = mean_interval(last)
            mean = statistics.fmean(last) if last else math.nan
            row |= {metric: mean, f"{metric}_low": low, f"{metric}_high": high}
        return row

    def plot(self) -> go.Figure:
        """Return the mean curve of each group over frames, with its 95 % interval as a band."""
        from rlnb.display.figures import with_picture

        return with_picture(bands_figure(self, self.metrics))

    def __repr__(self) -> str:
        sizes = (f"{name}: {counted(len(runs), 'run')}" for name, runs in self.items())
        return f"Groups({', '.join(sizes)})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Json]:
        from rlnb.display.figures import mimebundle

        return {**mimebundle(self.plot(), picture=True), "text/plain": f"{self!r}\n{self.table()}"}


def compare(runs: Sequence[Run], metric: str | Sequence[str] = "reward", *, by: By | None = None) -> Groups:
    """Group runs and compare the groups by their mean curves.

    Args:
        runs: Runs to compare, usually of one task.
        metric: Name, raw tag, or group of tags such as ``"Episode_Reward"``, or several of them.
        by: Name of the argument whose value defines the group (``"library"``, ``"num_envs"``, ``"sim.dt"``,
            ``"agent.algorithm.learning_rate"``), several such names, or a function that returns the group of a run.
            None puts runs that differ only in their seed, in their tags, or in the run that they start from into one
            group.

    Raises:
        NotFoundError: No run has an argument of that name, or no run has logged the metric.
        RlnbError: ``runs`` is empty.
    """
    if not runs:
        raise RlnbError("There is no run to compare. Start one with rlnb.train(...), or list them with rlnb.runs().")
    metrics = select(runs, [metric] if isinstance(metric, str) else list(metric))
    for name in metrics:
        if all(name not in source(run, name) for run in runs):
            logged = {tag for run in runs for tag in (*run.metrics.names, *run.metrics.tags, *run.system.tags)}
            raise unknown("metric", name, logged, has="Logged")
    group_of = by if callable(by) else _named(runs, by)
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str(group_of(run)), []).append(run)
    return Groups(groups, metrics)


def _named(runs: Sequence[Run], by: str | Sequence[str] | None) -> Callable[[Run], str]:
    """Return the function that names the group of a run by the values of its arguments."""
    of_runs = {run.path: shared_arguments(run.manifest) if by is None else arguments_of(run.manifest) for run in runs}
    names = dict.fromkeys(name for values in of_runs.values() for name in values)
    if by is None:
        keys = [name for name in names if len({repr(values.get(name)) for values in of_runs.values()}) > 1]
    else:
        keys = [SYNONYMS.get(key, key) for key in ([by] if isinstance(by, str) else by)]
        for key in keys:
            if key not in names:
                raise unknown("argument", key, names, has="Asked of these runs")

    def name(run: Run) -> str:
        values = of_runs[run.path]
        texts = ((key, str(values.get(key, "default"))) for key in keys)
        return ", ".join(text if key in ("task", "library") else f"{key} {text}" for key, text in texts) or run.task

    return name
