"""Fifty envs of five tasks, created and closed one after the other in one warm simulator: no crash, no memory growth.

    python benchmarks/cycles.py

Growth is measured from the point at which each task has been created twice, when kernels and assets are loaded.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb

TASKS = (
    "Isaac-Cartpole-Direct",
    "Isaac-Cartpole-Camera-Direct",
    "Isaac-Cartpole",
    "Isaac-Ant-Direct",
    "Isaac-Reorient-Cube-Shadow-Camera-Direct",
)
NUM_ENVS, GROWTH = 4, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=50)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    simulator = rlnb.simulator().wait()
    pid, held = simulator.pid, []
    for cycle in range(arguments.cycles):
        task = TASKS[cycle % len(TASKS)]
        assert not rlnb.preview(task, num_envs=NUM_ENVS, steps=3, device="cpu").findings
        simulator.wait()  # the simulator closes the env after its answer
        held.append(simulator.memory_gib)
        print(f"{cycle + 1} {task}: {held[-1]:.3f} GiB", flush=True)
    settled = held[2 * len(TASKS) - 1]
    growth = held[-1] / settled - 1
    record(
        f"{arguments.cycles} envs of {len(TASKS)} tasks, created and closed in one simulator",
        f"{'same process throughout' if simulator.pid == pid else 'crashed'}; {held[0]:.2f} GiB after the first env, "
        f"{settled:.2f} after two of each task, {held[-1]:.2f} after the last: {100 * growth:+.1f} %",
        "no crash, growth < 5 %",
        simulator.pid == pid and growth < GROWTH,
    )


if __name__ == "__main__":
    main()
