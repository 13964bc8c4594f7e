"""Measure how a training scales over ranks: the same task on 1, 2, 4, ... ranks, as a table and figures."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.contracts.launchers import Launcher
from rlnb.errors import CheckError, Problem, did_you_mean, whole_number
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.records.ranks import ranks_of
from rlnb.run import train
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.storage.files import whole
from rlnb.tasks.task import as_task, task_card

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Mode = Literal["horizontal", "vertical"]
"""Whether each rank has the same number of envs (weak scaling), or all ranks share one number (strong scaling)."""
GOOD = 0.8
"""Efficiency of the reference line in the figure. Below it, further ranks are seldom worth their cost."""
TOO_GOOD = 1.1
"""Efficiency above which a measurement cannot be true: the smallest run had to share its machine, for example."""
REPEAT = "repeat the measurement"
WINDOWS = 10
"""Number of equal parts of a training whose rates are compared."""
SETTLED = 0.2
"""Share of the first windows that the rate leaves out, because kernels are compiled in them."""
LAST = 0.1
"""Share of the last iterations over which the reward is averaged."""
REACHED = 0.9
"""Share of the smallest run's final reward. The time until a run reaches this reward is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingRow:
    """One run in the table of a scaling study."""

    ranks: int
    """Number of ranks."""
    nodes: int
    """Number of nodes."""
    envs_per_rank: int
    """Envs of each rank."""
    envs: int
    """Envs over all ranks."""
    frames_per_s: float
    """Frames per second, as the median over windows of a tenth of the training, without the first two windows."""
    efficiency: float
    """Frames per second per rank, as a share of those of the smallest run."""
    communication: float
    """Share of the time that ranks spend in all_reduce; NaN on GPUs."""
    reward: float
    """Mean reward of the last tenth of the iterations."""
    minutes: float
    """Minutes from the first to the last iteration."""
    minutes_to_reward: float
    """Minutes until 90 % of the smallest run's reward; NaN if the run never reaches it."""
    note: str
    """``"repeat the measurement"`` if the efficiency cannot be true, else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingStudy:
    """Runs of one task on increasing numbers of ranks, with their speeds and rewards."""

    mode: Mode
    """Kind of scaling. With ``"horizontal"`` (weak scaling) each rank has the same number of envs; with ``"vertical"``
    (strong scaling) all ranks together have the same number of envs."""
    runs: Mapping[int, Run]
    """Runs by number of ranks."""

    def table(self) -> pd.DataFrame:
        """Return one row per run, fewest ranks first.

        The columns are ``ranks``, ``nodes``, ``envs_per_rank``, ``envs``, ``frames_per_s`` (median over windows of a
        tenth of the training, without the first two), ``efficiency`` (frames/s per rank, as a share of those of the
        smallest run),
        ``communication`` (share of the training that ranks spend in all_reduce, including the wait for the slowest
        rank; NaN on GPUs, where all_reduce is asynchronous), ``reward`` (mean of the last tenth of the iterations),
        ``minutes`` (first to last iteration), ``minutes_to_reward`` (until 90 % of the smallest run's reward; NaN if
        a run never reaches it) and ``note`` (``"repeat the measurement"`` if the efficiency is above 110 %, which
        happens when the smallest run had to share its machine).
        """
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> list[ScalingRow]:
        """Return the rows of the table, fewest ranks first."""
        return [self._row(ranks) for ranks in sorted(self.runs)]

    def _row(self, ranks: int) -> ScalingRow:
        run, smallest = self.runs[ranks], min(self.runs)
        started = run.started
        envs = started.num_envs if started else 0
        rate, base = _rate(run), _rate(self.runs[smallest]) / smallest
        efficiency = rate / ranks / base if base else math.nan
        times = run.metrics["fps"].wall_time_s if "fps" in run.metrics.names else []
        return ScalingRow(
            ranks=ranks,
            nodes=run.manifest.resources.nodes,
            envs_per_rank=envs // ranks,
            envs=envs,
            frames_per_s=rate,
            efficiency=efficiency,
            communication=_communication(run),
            reward=_reward(run),
            minutes=(times[-1] - times[0]) / 60 if len(times) else math.nan,
            minutes_to_reward=_minutes_to(run, REACHED * _reward(self.runs[smallest])),
            note=REPEAT if efficiency > TOO_GOOD else "",
        )

    @property
    def most_ranks(self) -> int:
        """The most ranks with an efficiency of at least 80 %. Further ranks are seldom worth their cost.

        Measurements that have to be repeated do not count.
        """
        return max(row.ranks for row in self._rows() if row.ranks == min(self.runs) or _is_worth(row))

    def plot(self) -> go.Figure:
        """Return the efficiency over ranks, with a line at 80 %, and the curves of reward, loss and success."""
        from plotly.subplots import make_subplots

        from rlnb.display.figures import with_picture

        metrics = [name for name in ("reward", "value_loss", "success_rate") if self._logs(name)]
        titles = ["efficiency", *(name.replace("_", " ") for name in metrics)]
        chart = make_subplots(rows=1, cols=len(titles), subplot_titles=titles)
        self._add_efficiency(chart)
        for column, metric in enumerate(metrics, 2):
            self._add_curves(chart, metric, column)
        margin = {"l": 60, "r": 20, "t": 40, "b": 50}
        chart.update_layout(template="simple_white", height=360, margin=margin, legend={"orientation": "h"})
        return with_picture(chart)

    def _add_efficiency(self, chart: go.Figure) -> None:
        import plotly.graph_objects as go

        from rlnb.curves.figure import colour

        rows = self._rows()
        ranks, efficiencies = [row.ranks for row in rows], [row.efficiency for row in rows]
        line = go.Scatter(x=ranks, y=efficiencies, mode="lines+markers", line={"color": colour(0)}, showlegend=False)
        chart.add_trace(line, row=1, col=1)
        if odd := [row for row in rows if row.note]:
            look = {"size": 14, "symbol": "circle-open", "color": "#c44e52"}
            places = {"x": [row.ranks for row in odd], "y": [row.efficiency for row in odd]}
            chart.add_trace(go.Scatter(mode="markers", marker=look, name=REPEAT, **places), row=1, col=1)
        chart.add_hline(y=GOOD, line={"dash": "dot", "color": "#888"}, row=1, col=1)
        chart.update_xaxes(title_text="ranks", type="log", tickvals=ranks, row=1, col=1)
        chart.update_yaxes(range=[0, 1.1 * max(1.0, *efficiencies)], row=1, col=1)

    def _add_curves(self, chart: go.Figure, metric: str, column: int) -> None:
        """Draw a metric of each run over iterations. Only the second column adds its curves to the legend."""
        import plotly.graph_objects as go

        from rlnb.curves.figure import colour, series_of

        for number, count in enumerate(sorted(self.runs)):
            if (series := series_of(self.runs[count], metric)) is not None:
                line = go.Scatter(
                    mode="lines",
                    x=series.array("iterations"),
                    y=series.array("values"),
                    line={"color": colour(number)},
                    name=f"{count} rank{'s' if count > 1 else ''}",
                    legendgroup=str(count),
                    showlegend=column == 2,
                )
                chart.add_trace(line, row=1, col=column)
        chart.update_xaxes(title_text="iterations", row=1, col=column)

    def report(self, path: str | Path | None = None) -> Path:
        """Write a report of all runs and return its path.

        Args:
            path: File of the report; see :func:`rlnb.report`.
        """
        from rlnb.reports.report import report

        return report([self.runs[ranks] for ranks in sorted(self.runs)], path)

    def _logs(self, metric: str) -> bool:
        return any(metric in run.metrics.names for run in self.runs.values())

    def __repr__(self) -> str:
        each = ", ".join(
            f"{row.ranks} x {row.envs_per_rank:,} = {row.envs:,} envs: {row.frames_per_s:,.0f} frames/s "
            f"({row.efficiency:.0%}{f': {row.note}' if row.note else ''})"
            for row in self._rows()
        )
        return f"ScalingStudy({self.mode}; {each})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        rows = [
            [
                *(f"{count:,}" for count in (row.ranks, row.nodes, row.envs_per_rank, row.envs)),
                f"{row.frames_per_s:,.0f}",
                *("" if math.isnan(share) else f"{share:.0%}" for share in (row.efficiency, row.communication)),
                f"{row.reward:.3f}",
                *("" if math.isnan(minutes) else f"{minutes:.1f}" for minutes in (row.minutes, row.minutes_to_reward)),
                row.note,
            ]
            for row in self._rows()
        ]
        heads = ["ranks", "nodes", "envs per rank", "envs", "frames/s", "efficiency", "communication", "reward"]
        what = "each rank has the same envs" if self.mode == "horizontal" else "all ranks share the same envs"
        return table([*heads, "minutes", "minutes to reward", ""], rows, caption=f"Scaling, {self.mode}: {what}")


def scaling_study(
    task: Task | str,
    library: str = "rsl_rl",
    *,
    gpus: Sequence[int] = (1, 2, 4, 8),
    mode: Mode = "horizontal",
    num_envs: int | None = None,
    max_iterations: int = 100,
    launcher: Launcher | None = None,
    **arguments: Any,
) -> ScalingStudy:
    """Train a task on increasing numbers of ranks, one run after the other, and compare speed and reward.

    Args:
        task: A task, or its name.
        library: Name of the RL library; RSL-RL by default, also if the task's registration names another one.
        gpus: Numbers of ranks to try: GPUs, or processes on a CPU.
        mode: ``"horizontal"`` (weak scaling): ``num_envs`` is the number of each rank, so that more ranks collect more
            frames per iteration. ``"vertical"`` (strong scaling): ``num_envs`` is the number of all ranks together, so
            that more ranks finish sooner.
        num_envs: Environments; None is the task's own number.
        max_iterations: Iterations of every run.
        launcher: Where to train; None is this machine. With a cluster launcher, each run gets as many nodes as its
            ranks fill.
        arguments: Further arguments of :func:`rlnb.train`, e.g. ``device="cpu"``. Here ``nproc_per_node`` is the
            largest number of ranks on a node; None takes the launcher's. A launcher without such a number puts all
            ranks on one node.

    Raises:
        CheckError: A run would fail. It lists all problems; nothing was started.
    """
    task, num_envs, gpus = as_task(task), whole(num_envs), [whole(count) for count in gpus]
    launcher = launcher or LocalLauncher(max_running=1)
    asked_for = whole(arguments.get("nproc_per_node"))
    if asked_for is not None and (odd := whole_number("nproc_per_node", asked_for, example=8)):
        raise CheckError(f"scaling study of {task.id}", odd)
    at_most = asked_for or launcher.nproc_per_node
    problems = [*_check_names(arguments), *_check_numbers(gpus, mode, at_most)]
    if isinstance(launcher, LocalLauncher) and at_most:
        problems += [
            Problem(what="nproc_per_node needs a cluster launcher: here gpus sets the ranks.", fix="gpus=[1, 2]")
        ]
    if problems:
        raise CheckError(f"scaling study of {task.id}", problems)
    envs = num_envs or task.num_envs or _own_number(task, library, **arguments)
    trainings = {}
    for ranks in sorted(set(gpus)):
        per_node = min(ranks, at_most or ranks)
        trainings[ranks] = {
            **arguments,
            "library": library,
            "num_envs": envs * ranks if mode == "horizontal" and envs else envs,
            "max_iterations": max_iterations,
            "nproc_per_node": per_node,
            "launcher": _with_nodes(launcher, ranks // per_node),
        }
        for problem in train.check(task, **trainings[ranks]):
            problems.append(dataclasses.replace(problem, what=f"{ranks} ranks: {problem.what}"))
    if problems:
        raise CheckError(f"scaling study of {task.id}", problems)
    runs = {ranks: train.train(task, **training, warm=False).wait(check=True) for ranks, training in trainings.items()}
    return ScalingStudy(mode=mode, runs=runs)


def _check_names(arguments: Iterable[str]) -> list[Problem]:
    names = [*inspect.signature(train.train).parameters, *inspect.signature(scaling_study).parameters]
    return [
        Problem(what=f"scaling_study has no argument {name!r}.{did_you_mean(name, names)}", fix="max_iterations=100")
        for name in arguments
        if name not in names
    ]


def _check_numbers(gpus: Sequence[int], mode: str, per_node: int | None) -> list[Problem]:
    problems = []
    wrong = [ranks for ranks in gpus if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1]
    if wrong or not gpus:
        what = f"gpus={list(gpus)!r} is not a list of positive whole numbers (of ranks)."
        return [Problem(what=what, fix="gpus=[1, 2, 4]")]
    if mode not in ("horizontal", "vertical"):
        problems.append(Problem(what=f"mode={mode!r} is neither 'horizontal' nor 'vertical'.", fix='mode="horizontal"'))
    if per_node and (uneven := [ranks for ranks in gpus if ranks > per_node and ranks % per_node]):
        what = f"gpus={uneven} do not fill whole nodes of {per_node} ranks."
        problems.append(Problem(what=what, fix=f"gpus={[per_node, 2 * per_node]}"))
    return problems


def _own_number(task: Task, library: str, **arguments: Any) -> int | None:
    """Return the task's own number of envs; None if the library needs no simulator."""
    if not plugins.library(library).simulator:
        return None
    return task_card(task, python=arguments.get("python"), asset_root=arguments.get("asset_root")).num_envs


def _with_nodes(launcher: Launcher, nodes: int) -> Launcher:
    """Return a launcher with the same settings except for the number of nodes."""
    if launcher.nodes == nodes:
        return launcher
    factory: Callable[..., Launcher] = plugins.load(plugins.launcher(launcher.name).factory)
    return factory(**{**launcher.settings, "nodes": nodes})


def _rate(run: Run) -> float:
    """Return the frames/s of a run, without those of its start."""
    return settled_rate(run.metrics["fps"].values if "fps" in run.metrics.names else [])


def settled_rate(rates: Sequence[float]) -> float:
    """Return the median rate over windows of a training, without the first ones; NaN without a rate.

    The rate of a window is its frames by its time, so that a pause of one iteration shows in one window.

    Args:
        rates: Frames/s of each iteration.
    """
    count = min(WINDOWS, len(rates))
    bounds = [number * len(rates) // count for number in range(count + 1)] if count else []
    windows = [statistics.harmonic_mean(rates[begin:end]) for begin, end in itertools.pairwise(bounds)]
    settled = windows[math.ceil(SETTLED * len(windows)) :] or windows
    return statistics.median(settled) if settled else math.nan


def _is_worth(row: ScalingRow) -> bool:
    return row.efficiency >= GOOD and not row.note


def _reward(run: Run) -> float:
    """Return the mean reward over the last tenth of a run's iterations."""
    rewards = run.metrics["reward"].values if "reward" in run.metrics.names else []
    last = rewards[-max(1, int(LAST * len(rewards))) :]
    return statistics.fmean(last) if last else math.nan


def _minutes_to(run: Run, reward: float) -> float:
    """Return the minutes from the first iteration until a run reaches a reward; NaN if it never does."""
    if "reward" not in run.metrics.names or math.isnan(reward):
        return math.nan
    series = run.metrics["reward"]
    start_s = run.metrics["fps"].wall_time_s[0] if "fps" in run.metrics.names else series.wall_time_s[0]
    for time_s, value in zip(series.wall_time_s, series.values, strict=True):
        if value >= reward:
            return (time_s - start_s) / 60
    return math.nan


def _communication(run: Run) -> float:
    """Return the share of the training that ranks spent in all_reduce, averaged over ranks; NaN if not measured."""
    ranks = ranks_of(run.jobs[-1].result)
    shares = ranks.communication if ranks else ()
    return sum(shares) / len(shares) if shares else math.nan
