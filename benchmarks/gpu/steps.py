"""Steps/s of rlnb beside stock Isaac Lab: two trainings that take turns on one GPU."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from against_isaaclab import Case
from turns import horizon_of, led_in, our_side, pairs, stock_side

from gpu.part import ENOUGH, FEWEST, Measure, Part
from rlnb.simulation.pool import pool

CAMERA = "Isaac-Cartpole-Camera-Direct"
HAND = "Isaac-Reorient-Cube-Shadow-Camera-Direct"
"""The Shadow Hand that sees its cube in three streams: RGB, depth and segmentation."""
SHORT = {"num_steps_per_env": 8}
"""Agent values of the camera tasks, with which an iteration ends in time for a turn."""
STATES = ((Case("Isaac-Cartpole-Direct", 4096, 0), 64), (Case("Isaac-Ant-Direct", 4096, 0), 16))
CAMERAS = (
    (Case(CAMERA, 512, 0, presets=("newton_renderer",), agent=SHORT), 4),
    (Case(HAND, 512, 0, presets=("newton_renderer",), agent=SHORT), 2),
)
"""Trainings, each with its number of envs in a rehearsal."""
TURN_S = 2.0
"""Least length of a turn."""
ITERATIONS = 4
"""Least number of iterations of a turn."""


def measures(cases: tuple[tuple[Case, int], ...]) -> list[tuple[str, Measure]]:
    """Return a measure for each case."""

    def of(case: Case, small: int) -> tuple[str, Measure]:
        def measure(part: Part, seconds: float) -> None:
            beside_stock(part, replace(case, num_envs=part.size(case.num_envs, small)), seconds)

        return f"rsl_rl, {case.task}: steps/s, rlnb / stock", measure

    return [of(case, small) for case, small in cases]


def beside_stock(part: Part, case: Case, seconds: float) -> None:
    """Measure steps/s of a training beside those of ``isaaclab train``, for some seconds."""
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    ends_s = time.monotonic() + seconds
    horizon = horizon_of(case, "rsl_rl")
    pool.shut_down()  # it has read the task's card
    per_iteration = case.num_envs * horizon
    rates = []
    with stock_side(case, "rsl_rl", folder, part.device) as stock, our_side(case, "rsl_rl", part.device) as (ours, _):
        led_in((ours, stock), ends_s)
        iterations_s = ITERATIONS * max(_iteration_s(side.marks()) for side in (ours, stock))
        # As long as the time allows ten pairs. Alone, each side is faster than it was beside the other.
        turn_s = max(part.size(TURN_S, 0.5), min(iterations_s, (ends_s - time.monotonic()) / (2 * ENOUGH)))
        for ours_rate, stock_rate in within(part, pairs(ours, stock, 1, turn_s), ends_s):
            rates.append((ours_rate * per_iteration, stock_rate * per_iteration))
            part.record_pairs(
                f"rsl_rl, {case.task}, {case.num_envs:,} envs, {horizon} steps per iteration: steps/s, rlnb / stock",
                rates,
                "steps/s",
                at_least=0.98,
                low=0.95,
            )


def within(part: Part, found: Iterator[tuple[float, float]], ends_s: float) -> Iterator[tuple[float, float]]:
    """Yield pairs until the time is over, or until there are twice as many as a row needs."""
    most = part.size(2 * ENOUGH, FEWEST)
    for number, pair in enumerate(found, 1):
        yield pair
        if number >= most or time.monotonic() > ends_s:
            return


def _iteration_s(marks: list[tuple[float, float]]) -> float:
    (first_s, before), (last_s, after) = marks[-2:]
    return (last_s - first_s) / (after - before)
