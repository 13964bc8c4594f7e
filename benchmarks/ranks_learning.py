"""Checks that ``nproc_per_node="auto"`` learns as well as one process: final rewards of three seeds each.

    python benchmarks/ranks_learning.py --case 2

One process stands in for stock ``isaaclab train``: their scalars are bit-identical (against_isaaclab.py).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Literal

from against_isaaclab import Case, asset_root
from results import record

import rlnb
from rlnb.records.evaluation import mean_interval

CASES = (
    Case("Isaac-Cartpole-Camera-Direct", 32, 20),
    Case("Isaac-Ant-Direct", 1024, 20),
    Case("Isaac-Cartpole-Direct", 512, 100),
)
SEEDS, TAIL = 3, 0.1
"""Number of seeds, and the share of the iterations at the end over which the reward is averaged."""


def final_rewards(case: Case, nproc_per_node: int | Literal["auto"]) -> list[float]:
    """Train with each seed; return each run's mean reward over its last iterations."""
    means = []
    for seed in range(SEEDS):
        run = rlnb.train(
            case.task,
            num_envs=case.num_envs,
            max_iterations=case.iterations,
            seed=seed,
            device="cpu",
            nproc_per_node=nproc_per_node,
            warm=False,
        ).wait()
        rewards = run.metrics["reward"].values
        last = rewards[-max(1, int(TAIL * len(rewards))) :]
        means.append(sum(last) / len(last))
    return means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="run only this case")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    for index, case in enumerate(CASES):
        if arguments.case not in (None, index):
            continue
        rewards = [final_rewards(case, 1), final_rewards(case, "auto")]
        one, auto = map(mean_interval, rewards)
        texts = (
            f"{statistics.mean(values):.3f} ({low:.3f} to {high:.3f})"
            for values, (low, high) in zip(rewards, (one, auto), strict=True)
        )
        record(
            f'rsl_rl, {case.task}, {case.num_envs} envs: final reward of {SEEDS} seeds, one process and "auto"',
            " and ".join(texts) + f" after {case.iterations} iterations",
            "intervals overlap",
            max(one[0], auto[0]) <= min(one[1], auto[1]),
        )


if __name__ == "__main__":
    main()
