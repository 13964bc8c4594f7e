"""The cost of camera frames on the simulator's machine, and the number of envs within a time or memory limit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.configs.card import TaskCard
from rlnb.configs.checks import check_overrides, runtime_problems
from rlnb.contracts.launchers import Launcher
from rlnb.display.status import status
from rlnb.display.table import table
from rlnb.errors import CheckError, NotFoundError, Problem, unknown, whole_number
from rlnb.protocol.requests import Budget, Cost, Costs
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.spec import Task
from rlnb.storage.files import whole
from rlnb.tasks.task import as_task, task_card

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Size = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraBudget:
    """The cost of a camera's frames, by size and number of envs."""

    task: str
    """Id of the task."""
    data_types: tuple[str, ...]
    """Outputs in the frames; empty for the camera's configured outputs."""
    costs: tuple[Cost, ...]
    """Measured costs, sorted by size, then by number of envs."""

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Measured widths and heights, in pixels."""
        return tuple(dict.fromkeys(cost.size for cost in self.costs))

    def of(self, size: Size) -> tuple[Cost, ...]:
        """Return the costs of frames of one size, sorted by number of envs.

        Raises:
            NotFoundError: The size was not measured.
        """
        costs = tuple(cost for cost in self.costs if cost.size == tuple(size))
        if not costs:
            sizes = ", ".join(_label(one) for one in self.sizes)
            raise NotFoundError(f"Frames of {size!r} were not measured. Measured sizes are {sizes}.")
        return costs

    def table(self) -> pd.DataFrame:
        """Return a table with one row for each size and number of envs.

        The columns are ``width``, ``height``, ``num_envs``, ``ms`` (median time of a frame of all envs), ``ms_low`` and
        ``ms_high`` (fastest and slowest frame), ``ms_per_env``, ``mib``, and ``one_by_one`` (time of rendering
        each env's camera on its own, divided by ``ms``; NaN if one env was not measured).
        """
        import pandas as pd

        return pd.DataFrame([self._row(cost) for cost in self.costs])

    def _row(self, cost: Cost) -> dict[str, float]:
        return {
            "width": cost.size[0],
            "height": cost.size[1],
            "num_envs": cost.num_envs,
            "ms": cost.ms,
            "ms_low": min(cost.times_ms),
            "ms_high": max(cost.times_ms),
            "ms_per_env": cost.ms / cost.num_envs,
            "mib": cost.mib,
            "one_by_one": self.one_by_one(cost),
        }

    def one_by_one(self, cost: Cost) -> float:
        """Return the time of rendering each camera on its own, divided by the time of all as tiles; NaN if unknown."""
        alone = next((other.ms for other in self.of(cost.size) if other.num_envs == 1), float("nan"))
        return cost.num_envs * alone / cost.ms

    def largest(self, size: Size, *, ms: float | None = None, mib: float | None = None) -> int:
        """Return the largest number of envs whose frame stays within a time limit and a memory limit.

        Between two measured numbers of envs the cost is interpolated linearly. Beyond the largest measured number it
        is extrapolated from the last two, which is an estimate. Below the smallest, the cost is taken as proportional.

        Args:
            size: Width and height in pixels, one of the measured sizes.
            ms: Most milliseconds for a frame of all envs; None is no limit.
            mib: Most memory for a frame's pictures, in MiB; None is no limit.

        Raises:
            NotFoundError: The size was not measured.
            CheckError: Neither limit is given.
        """
        if ms is None and mib is None:
            raise CheckError("largest", [Problem(what="Neither ms nor mib is given.", fix="largest((64, 64), ms=20)")])
        costs = self.of(size)
        limits = [
            _crossing([(cost.num_envs, value(cost)) for cost in costs], most)
            for most, value in ((ms, lambda cost: cost.ms), (mib, lambda cost: cost.mib))
            if most is not None
        ]
        return min(limits)

    def plot(self) -> go.Figure:
        """Return a figure of the time of a frame over the number of envs, with a curve for each size and log axes."""
        import plotly.graph_objects as go

        figure = go.Figure()
        for size in self.sizes:
            costs = self.of(size)
            slow = [max(cost.times_ms) - cost.ms for cost in costs]
            fast = [cost.ms - min(cost.times_ms) for cost in costs]
            figure.add_trace(
                go.Scatter(
                    x=[cost.num_envs for cost in costs],
                    y=[cost.ms for cost in costs],
                    error_y={"type": "data", "array": slow, "arrayminus": fast},
                    mode="lines+markers",
                    name=_label(size),
                )
            )
        figure.update_xaxes(title="envs", type="log")
        figure.update_yaxes(title="ms per frame of all envs", type="log")
        return figure

    def __repr__(self) -> str:
        return f"CameraBudget({self.task}: {', '.join(_label(size) for size in self.sizes)})"

    def _repr_html_(self) -> str:
        rows = []
        for cost in self.costs:
            ratio = self.one_by_one(cost)
            spread = f"{cost.ms:.2f} ({min(cost.times_ms):.2f} to {max(cost.times_ms):.2f})"
            alone = f"{ratio:.1f} times as long" if ratio == ratio else "not measured"
            rows.append([_label(cost.size), str(cost.num_envs), spread, f"{cost.ms / cost.num_envs:.2f}", alone])
            rows[-1].append(f"{cost.mib:.2f}")
        heads = ["size", "envs", "ms per frame of all envs", "ms per env", "one camera after another", "MiB"]
        kinds = f", {', '.join(self.data_types)}" if self.data_types else ""
        return table(heads, rows, caption=f"Camera frames of {self.task} on the simulator's machine{kinds}")


@placement.takes_launcher
def camera_budget(
    task: Task | str,
    *,
    sizes: Sequence[Size] = ((64, 64), (128, 128)),
    envs: Sequence[int] = (1, 4, 16, 64),
    data_types: Sequence[str] | None = None,
    camera: str | None = None,
    frames: int = 5,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    warm: bool | None = None,
    launcher: Launcher | None = None,
) -> CameraBudget:
    """Measure the cost of frames of a task's camera on this machine, or on that of ``launcher``.

    Args:
        task: A task or its name. A task without cameras gets one.
        sizes: Widths and heights of the pictures, in pixels.
        envs: Numbers of envs to measure.
        data_types: ``"rgb"``, ``"depth"``, ...; None is the camera's configured data types.
        camera: Name of the task's camera; None is the first.
        frames: Number of frames to time for each size and number of envs.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        warm: Whether the warm simulator measures; None is ``rlnb.options.warm``.
        launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.

    Raises:
        CheckError: The task, the camera or a number has a problem; nothing was measured.
        WorkerError: The task's own code failed. The error contains the traceback.
    """
    task = as_task(task)
    card = task_card(task, python=python, asset_root=asset_root)
    envs, frames = [whole(number) for number in envs], whole(frames)
    _check(task, card, camera, sizes, envs, frames)

    def read(costs: Costs) -> CameraBudget:
        rows = sorted(costs.rows, key=lambda cost: (cost.size[0] * cost.size[1], cost.size, cost.num_envs))
        return CameraBudget(task=task.id, data_types=tuple(data_types or ()), costs=tuple(rows))

    request = Budget(
        task=task,
        camera=camera,
        data_types=tuple(data_types) if data_types else None,
        sizes=tuple((width, height) for width, height in sizes),
        envs=tuple(sorted(set(envs))),
        frames=frames,
        device=device,
    )
    with status(f"Measuring camera frames of {task.id}") as show:
        costs = pool.request(request, python, asset_root, warm=warm, meanwhile=lambda costs: show(read(costs)))
    return read(costs)


def _check(
    task: Task, card: TaskCard, camera: str | None, sizes: Sequence[Size], envs: Sequence[int], frames: int
) -> None:
    problems = [*check_overrides(task, card), *runtime_problems(task, card)]
    if camera is not None and camera not in card.cameras:
        problems.append(Problem(what=str(unknown("camera", camera, card.cameras, has=f"{card.task} has"))))
    problems += whole_number("frames", frames, example=5)
    for name, values, fix in (
        ("sizes", [edge for size in sizes for edge in size], "sizes=[(64, 64)]"),
        ("envs", list(envs), "envs=[1, 16]"),
    ):
        if not values or any(whole_number(name, value) for value in values):
            problems.append(Problem(what=f"{name}: {values!r} is not a list of positive whole numbers.", fix=fix))
    if any(len(size) != 2 for size in sizes):
        problems.append(Problem(what=f"sizes={list(sizes)!r} are not (width, height) pairs.", fix="sizes=[(64, 64)]"))
    if problems:
        raise CheckError(f"camera budget of {task.id}", problems)


def _crossing(points: Sequence[tuple[int, float]], most: float) -> int:
    """Return the largest whole x up to which the line through points (sorted by x) is at most ``most``."""
    if points[0][1] > most:
        return 0 if points[0][0] == 1 else int(points[0][0] * most / points[0][1])
    for (x, y), (next_x, next_y) in itertools.pairwise(points):
        if next_y > most:
            return int(x + (next_x - x) * (most - y) / (next_y - y))
    (x, y), (last_x, last_y) = points[-2] if len(points) > 1 else (0, 0.0), points[-1]
    slope = (last_y - y) / (last_x - x)
    return int(last_x + (most - last_y) / slope) if slope > 0 else last_x


def _label(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
