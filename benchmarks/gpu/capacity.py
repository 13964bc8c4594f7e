"""GPU memory by number of envs, and the largest number that a GPU holds."""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import dataclass

import psutil

import rlnb
from gpu.part import Measure, Part
from gpu.steps import CAMERA
from rlnb.machine.gpus import visible_gpus
from rlnb.machine.nvml import Gpus
from rlnb.simulation.pool import pool

CASES = (("Isaac-Cartpole-Direct", 4096, 16), ("Isaac-Ant-Direct", 4096, 16), (CAMERA, 512, 2))
"""Tasks, each with the number of envs to begin with, on a GPU and in a rehearsal."""
LARGEST_IN_REHEARSAL = 4
"""Times the first number at which a rehearsal ends."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A training of one iteration."""

    num_envs: int
    gib: float
    """Most memory in use meanwhile."""
    error: str
    """Why it failed; "" if it did not."""


def measures() -> list[tuple[str, Measure]]:
    """Return a measure for each task."""
    return [
        (f"{task}: memory by number of envs", functools.partial(_grow, task, full, small))
        for task, full, small in CASES
    ]


def _grow(task: str, full: int, small: int, part: Part, seconds: float) -> None:
    """Double the number of envs until it does not fit, and halve the step from there, for some seconds."""
    rlnb.task(task).card()
    pool.shut_down()  # its memory would be counted
    ends_s = time.monotonic() + seconds
    num_envs = part.size(full, small)
    limit = num_envs * LARGEST_IN_REHEARSAL if part.is_rehearsal else 2**30
    trials: list[Trial] = []
    least_failing: int | None = None
    while num_envs <= limit and time.monotonic() < ends_s:
        trial = _try(task, num_envs, part)
        trials.append(trial)
        if trial.error:
            least_failing = num_envs
        _record(part, task, trials)
        largest = max((one.num_envs for one in trials if not one.error), default=0)
        if least_failing is None:
            num_envs *= 2
        elif least_failing - largest <= max(1, largest // 8):
            break
        else:
            num_envs = (largest + least_failing) // 2


def _try(task: str, num_envs: int, part: Part) -> Trial:
    ended = threading.Event()
    most: list[float] = [0.0]

    def watch() -> None:
        while not ended.wait(0.2):
            most[0] = max(most[0], _used_gib(part))

    watcher = threading.Thread(target=watch)
    watcher.start()
    error = ""
    try:
        rlnb.train(task, num_envs=num_envs, max_iterations=1, device=part.device, warm=False).wait(timeout_s=600)
    except rlnb.RlnbError as exc:
        error = str(exc).strip().splitlines()[0]
    finally:
        ended.set()
        watcher.join()
    return Trial(num_envs=num_envs, gib=most[0], error=error)


def _used_gib(part: Part) -> float:
    """Return the memory in use on the GPU; in a rehearsal, that of the processes of the training."""
    if not part.is_rehearsal:
        return dict(Gpus([visible_gpus()[0].uuid]).sample())["gpu0_memory_gib"]
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total / 2**30


def _record(part: Part, task: str, trials: list[Trial]) -> None:
    fitting = [f"{one.num_envs:,}: {one.gib:.2f} GiB" for one in trials if not one.error]
    failing = [f"{one.num_envs:,} failed: {one.error[:160]}" for one in trials if one.error]
    kind = "memory of the processes" if part.is_rehearsal else "GPU memory"
    part.record(
        f"rsl_rl, {task}: {kind} by number of envs, one iteration",
        "; ".join([*fitting, *failing]),
        "the largest number is found" if not part.is_rehearsal else "none",
        bool(failing) or part.is_rehearsal,
    )
