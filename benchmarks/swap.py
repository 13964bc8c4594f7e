"""The time to swap a changed reward term into a living env.

python benchmarks/swap.py
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb

TASK, SWAPS, NUM_ENVS = "Isaac-Cartpole", 20, 64


def main() -> None:
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    tuner = rlnb.tune(TASK, num_envs=NUM_ENVS, device="cpu")
    path = next(path for path in tuner.tunable if path.endswith(".weight"))
    seconds, whole = [], []
    for number in range(SWAPS):
        tuner.set(path, 1.5 + number)
        assert tuner.how == "rewards swapped"
        seconds.append(tuner.seconds["change"])
        whole.append(tuner.took_s)
    median = statistics.median(seconds)
    record(
        f"swap of a reward term in a living env, {TASK}, {NUM_ENVS} envs",
        f"median of {SWAPS}: {median:.3f} s, worst {max(seconds):.3f} s; with its config resolved again "
        f"{statistics.median(whole):.3f} s",
        "<= 0.05 s",
        median <= 0.05,
    )


if __name__ == "__main__":
    main()
