"""Compare RL libraries on one task: equal numbers of frames, several seeds, confidence intervals."""

from __future__ import annotations

import html
import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.display.table import counted, table
from rlnb.errors import CheckError, Problem, RlnbError, RunError, whole_number
from rlnb.records.evaluation import Evaluation, interval_text, mean_interval
from rlnb.records.options import mode_problems
from rlnb.run import train
from rlnb.run.run import Run, start_runs
from rlnb.spec import EnvMode, Task
from rlnb.storage.files import whole
from rlnb.tasks.task import as_task, task_card
from rlnb.training.arguments import TrainArguments
from rlnb.training.create import array_problems
from rlnb.version import renamed

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """A mean over seeds with its 95 % interval; all three are NaN if there are no values.

    The interval of several seeds is Student's t. That of one seed is over the episodes of its evaluation, and says
    nothing about other seeds.
    """

    value: float
    """The mean."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    over: Literal["seeds", "episodes"]
    """Source of the interval."""

    @classmethod
    def of(cls, values: Sequence[float], of_episodes: Sequence[tuple[float, float] | None]) -> Mean:
        """Return the mean of values with its interval.

        Args:
            values: Value of each seed.
            of_episodes: Interval of each seed over its episodes; None if it has none.
        """
        mean = statistics.fmean(values) if values else math.nan
        if len(values) == 1 and (only := of_episodes[0]) is not None:
            return cls(value=mean, low=only[0], high=only[1], over="episodes")
        low, high = mean_interval(values)
        return cls(value=mean, low=low, high=high, over="seeds")

    def __str__(self) -> str:
        interval = interval_text((self.low, self.high))
        of_episodes = ", over episodes" if self.over == "episodes" else ""
        return f"{self.value:.3f} ({interval}{of_episodes})" if interval else f"{self.value:.3f}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonRow:
    """One library in the table of a comparison."""

    library: str
    """Name of the library."""
    seeds: int
    """Number of runs."""
    frames: float
    """Frames of the longest run."""
    mean_return: Mean
    """Mean return of the evaluations."""
    success: Mean
    """Success rate of the evaluations, 0 to 1."""
    fps: float
    """Median frames per second of a run, averaged over seeds."""
    minutes: float
    """Minutes from the first to the last iteration of a run, averaged over seeds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Runs of several libraries with equal numbers of frames, and the evaluations of their policies."""

    runs: Mapping[str, Sequence[Run]]
    """Runs by library, one for each seed."""
    evaluations: Mapping[str, Sequence[Evaluation]]
    """Evaluations by library, in the order of :attr:`runs`. One that failed says why (:attr:`Evaluation.problem`).
    All have the same mode."""

    def __post_init__(self) -> None:
        """Refuse evaluations in different envs.

        Raises:
            RlnbError: The modes of the evaluations differ.
        """
        _ = self.mode

    @property
    def mode(self) -> EnvMode | None:
        """Env of the evaluations (:attr:`rlnb.results.Evaluation.mode`); None if there is none, or no simulator."""
        libraries: dict[EnvMode, list[str]] = {}
        for name, evaluations in self.evaluations.items():
            for mode in sorted({one.mode for one in evaluations if one.mode and one.episodes}):
                libraries.setdefault(mode, []).append(name)
        if len(libraries) > 1:
            found = " and ".join(f"{mode!r} for {', '.join(names)}" for mode, names in sorted(libraries.items()))
            raise RlnbError(f"The modes of the evaluations differ: {found}. Use run.evaluate(mode=...) with one mode.")
        return next(iter(libraries), None)

    def table(self) -> pd.DataFrame:
        """Return one row per library: means over seeds with their 95 % intervals.

        The columns are ``library``, ``seeds``, ``frames`` (of the longest run), ``return``, ``return_low``,
        ``return_high``, ``success``, ``success_low``, ``success_high``, ``interval_over`` (``"seeds"``, or
        ``"episodes"`` if there is one seed; see :class:`Mean`), ``mode`` (of the evaluations), ``fps`` (median
        frames/s of a run, averaged over seeds) and ``minutes`` (first to last iteration of a run, averaged over seeds).
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "library": row.library,
                    "seeds": row.seeds,
                    "frames": row.frames,
                    "return": row.mean_return.value,
                    "return_low": row.mean_return.low,
                    "return_high": row.mean_return.high,
                    "success": row.success.value,
                    "success_low": row.success.low,
                    "success_high": row.success.high,
                    "interval_over": row.mean_return.over,
                    "mode": self.mode,
                    "fps": row.fps,
                    "minutes": row.minutes,
                }
                for row in map(self._row, self.runs)
            ]
        )

    def _row(self, library: str) -> ComparisonRow:
        runs = self.runs[library]
        evaluations = [one for one in self.evaluations[library] if one.episodes]
        rated = [(rate, one.success_interval) for one in evaluations if (rate := one.success_rate) is not None]
        rates = [run.metrics["fps"] for run in runs if "fps" in run.metrics.names]
        minutes = [(rate.wall_time_s[-1] - rate.wall_time_s[0]) / 60 for rate in rates]
        return ComparisonRow(
            library=library,
            seeds=len(runs),
            frames=max((rate.frames[-1] for rate in rates), default=0.0),
            mean_return=Mean.of([one.mean_return for one in evaluations], [one.return_interval for one in evaluations]),
            success=Mean.of([rate for rate, _ in rated], [interval for _, interval in rated]),
            fps=statistics.fmean(statistics.median(rate.values) for rate in rates) if rates else math.nan,
            minutes=statistics.fmean(minutes) if rates else math.nan,
        )

    def plot(self, metrics: Sequence[str] = ("reward", "success_rate")) -> go.Figure:
        """Return the curves of metrics over frames: means over seeds, with their 95 % intervals as bands.

        Args:
            metrics: Names of the metrics, one subplot for each.
        """
        from rlnb.curves.figure import bands_figure
        from rlnb.display.figures import with_picture

        return with_picture(bands_figure(self.runs, metrics))

    def __repr__(self) -> str:
        sizes = (f"{name}: {counted(len(runs), 'seed')}" for name, runs in self.runs.items())
        return f"Comparison({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        rows = []
        for row in map(self._row, self.runs):
            counts = [str(row.seeds), f"{row.frames:,.0f}"]
            means = [str(row.mean_return), str(row.success)]
            rows.append([row.library, *counts, *means, f"{row.fps:,.0f}", f"{row.minutes:.1f}"])
        heads = ["library", "seeds", "frames", "return (95 %)", "success (95 %)", "frames/s", "minutes"]
        problems = [one.problem for of_library in self.evaluations.values() for one in of_library if one.problem]
        texts = "".join(f"<p>{html.escape(problem)}</p>" for problem in problems)
        mode = f", mode {self.mode}" if self.mode else ""
        return table(heads, rows, caption=f"Equal frames, policies evaluated from reset{mode}") + texts


@renamed(frames="max_frames")
def compare_libraries(
    task: Task | str,
    libraries: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    max_frames: int,
    num_envs: int | None = None,
    episodes: int = 100,
    mode: EnvMode | None = None,
    agent: Mapping[str, AgentArgument] | None = None,
    array: bool = False,
    parallel: int | None = None,
    **arguments: Any,
) -> Comparison:
    """Train a task with several libraries and seeds for the same number of frames, and evaluate each policy.

    Every library uses its own agent config of the task, and stops at the end of the iteration in which it reaches
    ``max_frames``. All runs are started at once and wait for each other in the launcher's queue. An interrupt of the
    call does not stop them.

    Args:
        task: A task, or its name.
        libraries: Names of libraries; None takes every library that can train the task in the worker's interpreter.
        seeds: Number of runs of each library, with seeds 0, 1, ...
        max_frames: Frames of each run: env transitions over all envs.
        num_envs: Environments of each run; None keeps the task's own number.
        episodes: Episodes of each evaluation.
        mode: Env of the evaluations, as in :meth:`rlnb.Run.evaluate`.
        agent: Argument ``agent`` of :func:`rlnb.train` by library: ``{"rsl_rl": {"algorithm.learning_rate": 3e-4}}``.
        array: Whether to start the runs as one array job of the queue, with one host process for all of them. Slurm and
            Grid Engine have arrays.
        parallel: Number of runs of an array that train at once; None leaves it to the queue.
        arguments: Further arguments of :func:`rlnb.train`, e.g. ``device="cpu"``.

    Raises:
        CheckError: A run would fail, or the frames of a library cannot be counted. Nothing was started.
    """
    task, seeds, max_frames, num_envs, episodes = as_task(task), *map(whole, (seeds, max_frames, num_envs, episodes))
    card = task_card(task, python=arguments.get("python"), asset_root=arguments.get("asset_root"))
    envs = num_envs or task.num_envs or card.num_envs
    usable = [name for name, agent_card in card.agents.items() if agent_card.usable and not agent_card.needs_choice]
    names = list(libraries) if libraries is not None else sorted(usable)
    problems = [*whole_number("seeds", seeds, example=3), *mode_problems(mode)]
    if odd := whole_number("max_frames", max_frames, example=1_000_000):
        problems, max_frames = [*problems, *odd], 1
    for name in set(agent or ()) - set(names):
        problems.append(Problem(what=f"agent has values for {name!r}, which is not one of: {', '.join(names)}."))
    trainings = [
        {**arguments, "library": name, "num_envs": envs, "max_frames": max_frames, "agent": (agent or {}).get(name)}
        for name in names
    ]
    for training in trainings:
        problems += train.check(task, **training)
    if array and not problems:
        problems += array_problems(arguments.get("launcher"), len(trainings) * seeds)
    if problems:
        raise CheckError(f"comparison of libraries on {task.id}", [*dict.fromkeys(problems)])
    each = [{**training, "seed": seed, "warm": False} for training in trainings for seed in range(seeds)]
    if array:
        started = start_runs([TrainArguments.of(task, one) for one in each], at_once=whole(parallel))
    else:
        started = [train.train(task, **one) for one in each]
    runs = {name: started[number * seeds : (number + 1) * seeds] for number, name in enumerate(names)}
    evaluations = {
        name: [_evaluation(run.wait(check=True), episodes, mode) for run in of_library]
        for name, of_library in runs.items()
    }
    return Comparison(runs=runs, evaluations=evaluations)


def _evaluation(run: Run, episodes: int, mode: EnvMode | None = None) -> Evaluation:
    """Return the evaluation of a run. One that fails spoils only its own place in the comparison."""
    try:
        return run.evaluate(episodes, mode=mode)
    except RunError as exc:
        warnings.warn(f"The comparison goes on without this evaluation: {exc}", stacklevel=3)
        return Evaluation.invalid(str(exc))
