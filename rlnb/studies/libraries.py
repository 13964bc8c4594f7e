"""RL libraries side by side on one task: equal frames, several seeds, intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb import plugins
from rlnb.errors import CheckError, Problem, RlnbError, unknown, whole_number
from rlnb.records.evaluation import Evaluation, mean_interval
from rlnb.run.run import Run
from rlnb.simulation.card import task_card
from rlnb.spec import Task
from rlnb.tasks.agent_config import agent_values
from rlnb.tasks.card import TaskCard
from rlnb.tasks.task import as_task
from rlnb.training import train

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.spec import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """A mean over seeds with its 95 % interval (Student's t); NaN without values."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Return the mean of some values."""
        if not values:
            return cls(value=math.nan, low=math.nan, high=math.nan)
        low, high = mean_interval(values)
        return cls(value=statistics.fmean(values), low=low, high=high)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One library in the table of a comparison."""

    library: str
    seeds: int
    frames: float
    """Most frames of a run."""
    mean_return: Mean
    success: Mean
    fps: float
    """Mean over seeds of a run's median."""
    minutes: float
    """Mean over seeds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Runs of several libraries with equal frame budgets, and how their policies did."""

    runs: Mapping[str, Sequence[Run]]
    """By library, one run a seed."""
    evaluations: Mapping[str, Sequence[Evaluation]]
    """By library, in the same order."""

    def table(self) -> pd.DataFrame:
        """Return one row a library: means over seeds with their 95 % intervals (Student's t).

        Columns ``library``, ``seeds``, ``frames``, ``return``, ``return_low``, ``return_high``, ``success``,
        ``success_low``, ``success_high``, ``fps`` (mean over seeds of a run's median), ``minutes`` (mean of a run).
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
                    "fps": row.fps,
                    "minutes": row.minutes,
                }
                for row in map(self._row, self.runs)
            ]
        )

    def _row(self, library: str) -> Row:
        runs, evaluations = self.runs[library], self.evaluations[library]
        successes = [rate for evaluation in evaluations if (rate := evaluation.success_rate) is not None]
        rates = [run.metrics["fps"] for run in runs if "fps" in run.metrics.names]
        minutes = [(rate.wall_time_s[-1] - rate.wall_time_s[0]) / 60 for rate in rates]
        return Row(
            library=library,
            seeds=len(runs),
            frames=max((rate.frames[-1] for rate in rates), default=0.0),
            mean_return=Mean.of([evaluation.mean_return for evaluation in evaluations]),
            success=Mean.of(successes),
            fps=statistics.fmean(statistics.median(rate.values) for rate in rates) if rates else math.nan,
            minutes=statistics.fmean(minutes) if rates else math.nan,
        )

    def plot(self, metrics: Sequence[str] = ("reward", "success_rate")) -> go.Figure:
        """Return the mean over seeds of each metric over frames, with its 95 % interval as a band."""
        from rlnb.curves.bands import figure
        from rlnb.curves.figure import with_picture

        return with_picture(figure(self.runs, metrics))

    def __repr__(self) -> str:
        return f"Comparison({', '.join(f'{name}: {len(runs)} seeds' for name, runs in self.runs.items())})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        rows = []
        for row in map(self._row, self.runs):
            means = [f"{mean.value:.3f} ({mean.low:.3f} to {mean.high:.3f})" for mean in (row.mean_return, row.success)]
            counts = [str(row.seeds), f"{row.frames:,.0f}"]
            rows.append([row.library, *counts, *means, f"{row.fps:,.0f}", f"{row.minutes:.1f}"])
        heads = ["library", "seeds", "frames", "return (95 %)", "success (95 %)", "frames/s", "minutes"]
        return table(heads, rows, caption="Equal frames, policies evaluated from reset")


def compare_libraries(
    task: Task | str,
    libraries: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    frames: int,
    num_envs: int | None = None,
    episodes: int = 100,
    agent: Mapping[str, Mapping[str, Json] | str | Path] | None = None,
    **arguments: Any,
) -> Comparison:
    """Train a task with several libraries and seeds for the same number of frames, and evaluate each policy.

    Every library trains with the task's own agent config for it, and stops at the end of the iteration in which it
    reaches ``frames``. The runs queue up on this machine, and stay if the waiting is interrupted.

    Args:
        task: A task, or its name.
        libraries: Names of libraries; None is all that are installed and that the task has an agent config for.
        seeds: Runs a library, with seeds 0, 1, ...
        frames: Env transitions of each run, over all envs.
        num_envs: Environments of each run; None keeps the task's own number.
        episodes: Evaluation episodes of each run.
        agent: Agent config values by library: ``{"rsl_rl": {"algorithm.learning_rate": 3e-4}}``.
        arguments: Further arguments of :func:`rlnb.train`, e.g. ``device="cpu"``.

    Raises:
        CheckError: A run would fail, or its frames cannot be counted; nothing was started.
    """
    task = as_task(task)
    card = task_card(task, python=arguments.get("python"), asset_root=arguments.get("asset_root"))
    envs = num_envs or task.num_envs or card.num_envs
    usable = [name for name, agent_card in card.agents.items() if agent_card.usable]
    names = list(libraries) if libraries is not None else sorted(usable)
    values = {name: agent_values((agent or {}).get(name)) for name in names}
    problems = []
    iterations = {}
    for name in names:
        try:
            iterations[name] = math.ceil(max(frames, 1) / (_horizon(card, name, values[name]) * envs))
        except RlnbError as exc:
            problems.append(Problem(what=str(exc)))
    for name in set(agent or ()) - set(names):
        problems.append(Problem(what=f"agent has values for {name!r}, which is not compared: {', '.join(names)}."))
    problems += [*whole_number("seeds", seeds, example=3), *whole_number("frames", frames, example=1_000_000)]
    trainings = [
        {
            **arguments,
            "library": name,
            "num_envs": envs,
            "max_iterations": iterations[name],
            "agent": values[name],
        }
        for name in iterations
    ]
    for training in trainings:
        problems += train.check(task, **training)
    if problems:
        raise CheckError(f"comparison of libraries on {task.id}", problems)
    runs = {
        training["library"]: [train.train(task, **training, seed=seed, warm=False) for seed in range(seeds)]
        for training in trainings
    }
    evaluations = {name: [run.wait().evaluate(episodes) for run in of_library] for name, of_library in runs.items()}
    return Comparison(runs=runs, evaluations=evaluations)


def _horizon(card: TaskCard, name: str, values: Mapping[str, Json]) -> int:
    """Return the env steps per iteration of a library's agent config with these values set."""
    library = plugins.library(name)
    agent = card.agents.get(name)
    if agent is None:
        raise unknown("agent config", name, card.agents, has=f"{card.task} has")
    if agent.error:
        raise RlnbError(f"The agent config of {name} does not load: {agent.error}")
    defaults = {path: field.value for path, field in agent.fields.items()}
    for path, value in {**defaults, **{path.removeprefix("+"): value for path, value in values.items()}}.items():
        if path.rsplit(".", 1)[-1] == library.horizon_key and isinstance(value, int | float):
            return int(value)
    raise RlnbError(
        f"the agent config of {name} has no {library.horizon_key!r}, so its frames cannot be counted. "
        "Library.horizon_key of its plugin names the env steps per iteration in its agent configs."
    )
