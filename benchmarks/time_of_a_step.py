"""Splits the time of a training step for each library, to explain why their speeds differ on the same task.

    python benchmarks/time_of_a_step.py

A step costs time twice: it is collected (policy, simulation, reward), and then the library learns from it in as many
epochs as the task's agent config for that library has.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb

TASK, NUM_ENVS, ITERATIONS, FIRST = "Isaac-Cartpole-Direct", 512, 40, 10
"""The first iterations, which load kernels, are left out."""
PASSES = {
    "rsl_rl": ("algorithm.num_learning_epochs",),
    "rl_games": ("params.config.mini_epochs",),
    "skrl": ("agent.learning_epochs",),
}
"""Path of the number of learning epochs in each library's agent config."""


def main() -> None:
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    card = rlnb.task(TASK).card()
    for library, (passes,) in PASSES.items():
        run = rlnb.train(
            TASK, library=library, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu", warm=False
        ).wait()
        frames = run.metrics["collection_s"].frames
        per_iteration = frames[-1] - frames[-2]
        collecting, learning = (
            1e6 * statistics.median(run.metrics[name].values[FIRST:]) / per_iteration
            for name in ("collection_s", "learning_s")
        )
        often = card.agents[library].fields[passes].value
        record(
            f"{library}, {TASK}, {NUM_ENVS} envs: time of a step",
            f"{collecting:.0f} us for collection, {learning:.0f} us for learning in {often} epochs "
            f"({learning / often:.1f} us each): {1e6 / (collecting + learning):,.0f} steps/s",
            "explained",
            True,
        )


if __name__ == "__main__":
    main()
