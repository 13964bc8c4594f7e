"""Runs a part of the benchmarks on a GPU; ``make bench-gpu`` says how.

    python -m gpu --part 1 --minutes 8 --device cuda:0    # with benchmarks/ on PYTHONPATH

Each row is written as soon as there is one, and again with each further measurement, so a part that is cut off keeps
what it has. ``--device cpu`` rehearses a part with smaller sizes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from against_isaaclab import asset_root

import rlnb
from gpu import capacity, learning, living, prices, steps
from gpu.part import Part, run

PARTS = {
    1: ("steps/s beside Isaac Lab", lambda: steps.measures(steps.STATES)),
    2: ("steps/s of camera tasks beside Isaac Lab", lambda: steps.measures(steps.CAMERAS)),
    3: ("prices", prices.measures),
    4: ("the warm simulator", living.measures),
    5: ("learning and engines", learning.measures),
    6: ("memory", capacity.measures),
}
"""Name and measures of each part, the most telling first."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, choices=PARTS, required=True)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        os.environ.setdefault("RLNB_RESULTS", str(Path(__file__).parents[2] / "outputs" / "rehearsal.md"))
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # two trainings with many threads each slow each other down
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    os.environ["RLNB_QUEUE"] = str(base / "queue")
    rlnb.options.root = base / "rlnb"
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    name, measures = PARTS[arguments.part]
    part = Part(device=arguments.device, minutes=arguments.minutes)
    sys.exit(not run(part, f"part {arguments.part} of the benchmarks, {name}", measures()))


if __name__ == "__main__":
    main()
