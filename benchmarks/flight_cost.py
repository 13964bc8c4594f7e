"""The price of the flight recorder: env steps per second with it, as a share of those without it.

    python benchmarks/flight_cost.py [--pairs 20] [TASK ...]

Both are measured in one process and one env, by turns, without any learning. A training also learns, so the share of
its time is smaller. The record is then written once, for its size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from against_isaaclab import asset_root
from results import ratio_interval, record

import rlnb

NUM_ENVS, STEPS = 512, 200
TASKS = ("Isaac-Cartpole-Direct", "Isaac-Ant-Direct", "Isaac-Cartpole-Camera-Direct")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    arguments = parser.parse_args()
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(asset_root())
    for task in arguments.tasks:
        measure(task, arguments.pairs, 64 if "Camera" in task else NUM_ENVS)


def measure(task: str, pairs: int, num_envs: int) -> None:
    import torch

    from rlnb.worker.actions import actions
    from rlnb.worker.flight.recorder import Recorder
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    with environment(rlnb.Task(id=task, num_envs=num_envs), None, device="cpu") as (env, _):
        raw = isaaclab.task_env(env)
        env.reset(seed=0)
        acts = actions(raw, "random")
        steps = STEPS if num_envs == NUM_ENVS else STEPS // 10

        def seconds(recorded: bool) -> float:
            plain = raw.step
            begin_s = time.perf_counter()
            with torch.inference_mode():
                if recorded:
                    with Recorder(env, folder, lambda _: None):
                        for _ in range(steps):
                            raw.step(acts)
                else:
                    for _ in range(steps):
                        raw.step(acts)
            raw.step = plain
            return time.perf_counter() - begin_s

        seconds(recorded=True)
        ratios = []
        for pair in range(pairs):
            order = (True, False) if pair % 2 else (False, True)
            took_s = {recorded: seconds(recorded) for recorded in order}
            ratios.append((took_s[False], took_s[True]))
        mb = size_mb(env, folder / "flight0")
    record(
        f"flight record of 32 steps, {num_envs} envs of {task}: its size, with what a replay needs",
        f"{mb:.1f} MB",
        "<= 5 MB",
        mb <= 5.0,
    )
    if not ratios:
        return
    ratio, low, high = ratio_interval(ratios)
    record(
        f"flight recorder, {num_envs} envs of {task}: env steps/s with it, as a share of those without it",
        f"{ratio:.3f} [{low:.3f}, {high:.3f}], {pairs} pairs",
        ">= 0.99, lower end >= 0.97",
        ratio >= 0.99 and low >= 0.97,
    )


def size_mb(env: Any, folder: Path) -> float:
    """Return the size of the record of steps with random actions, which an alert asks for."""
    import torch

    from rlnb.worker.actions import actions
    from rlnb.worker.flight import recorder
    from rlnb.worker.isaac import isaaclab

    raw = isaaclab.task_env(env)
    plain, before_s = raw.step, recorder.REQUEST_S
    recorder.REQUEST_S = 0.0
    with torch.inference_mode(), recorder.Recorder(env, folder, lambda _: None):
        for step in range(64):
            if step == 60:  # answered after the last step, when most steps can be replayed
                (folder.parent / recorder.REQUEST).write_text("the benchmark wants a record")
            raw.step(actions(raw, "random"))
    raw.step, recorder.REQUEST_S = plain, before_s
    return sum(path.stat().st_size for path in (folder.parent / f"alert-{folder.name}").iterdir()) / 1e6


if __name__ == "__main__":
    main()
