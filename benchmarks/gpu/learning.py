"""Learning on a GPU: the time until cartpole succeeds, and the two engines beside each other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import physx

import rlnb
from gpu.part import Measure, Part
from gpu.steps import within
from rlnb.plugin import ENDED
from rlnb.simulation.pool import pool

TASK, SUCCESS, SEED = "Isaac-Cartpole-Direct", 0.95, 0
FRAMES = 150 * 32 * 256
"""As in learning.py."""
ANT = "Isaac-Ant-Direct"


def measures() -> list[tuple[str, Measure]]:
    """Return the measures, the most telling first."""
    return [
        (f"{TASK}: time to success", time_to_success),
        (f"{TASK}: env steps/s, Newton / OvPhysX", lambda part, seconds: engines(TASK, part, seconds)),
        (f"{ANT}: env steps/s, Newton / OvPhysX", lambda part, seconds: engines(ANT, part, seconds)),
    ]


def time_to_success(part: Part, seconds: float) -> None:
    """Train until nearly all of the last hundred episodes have succeeded; the time counts from the call."""
    num_envs = part.size(4096, 64)
    rlnb.task(TASK).card()
    pool.shut_down()
    begin_s = time.time()
    run = rlnb.train(TASK, num_envs=num_envs, max_iterations=10_000, seed=SEED, device=part.device, warm=False)
    what = f"rsl_rl, {TASK}, {num_envs:,} envs: time from the call to a success rate of {SUCCESS:g} in training"
    best, frames = 0.0, 0.0
    try:
        while time.time() < begin_s + seconds and run.state not in ENDED:
            time.sleep(0.5)
            if not (curve := run.metrics.get("success_rate")):  # it may have no point yet
                continue
            times_s, all_frames = curve.wall_time_s, curve.frames
            best, frames = max([best, *curve.values]), all_frames[-1]
            for number, value in enumerate(curve.values):
                if value >= SUCCESS:
                    text = f"{times_s[number] - begin_s:.1f} s, {all_frames[number]:,.0f} frames, seed {SEED}"
                    part.record(what, text, "it succeeds", True)
                    return
    finally:
        run.cancel()
        with contextlib.suppress(rlnb.RlnbError):
            run.wait()
    part.record(what, f"{best:.2f} after {seconds:.0f} s, {frames:,.0f} frames", "it succeeds", False)


def engines(task: str, part: Part, seconds: float) -> None:
    """Step the same envs in both engines, by turns."""
    ends_s = time.monotonic() + seconds
    num_envs, turn_s = part.size(4096, 64), part.size(3.0, 0.5)
    newton, other = (physx.Engine(task, num_envs, name, part.device) for name in (physx.NEWTON, physx.PHYSICS))
    try:
        for engine in (newton, other):
            engine.steps(turn_s)  # warms up
        found = []

        def pairs() -> Iterator[tuple[float, float]]:
            number = 0
            while True:
                order = (newton, other) if number % 2 else (other, newton)
                rates = {engine: engine.steps(turn_s)[0] for engine in order}
                yield rates[newton], rates[other]
                number += 1

        for pair in within(part, pairs(), ends_s):
            found.append(pair)
            part.record_pairs(
                f"{task}, {num_envs:,} envs, random actions: env steps/s, Newton / OvPhysX",
                found,
                "env steps/s",
                at_least=0.0,
                low=0.0,
            )
    finally:
        for engine in (newton, other):
            engine.close()
