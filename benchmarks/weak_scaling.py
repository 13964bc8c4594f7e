"""The cost of synchronised ranks: two ranks, compared with two simultaneous, independent stock Isaac Lab trainings.

    python benchmarks/weak_scaling.py

Both sides have two processes of one thread each with the same number of envs, so that they share memory and cores
alike. They differ in the all_reduce over ranks, the wait for the slower rank, and rlnb itself. Rates are iterations per
second without the first iterations, from the event files. A single rank of rlnb is measured too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from against_isaaclab import SKIPPED, Case, asset_root, stock_command
from results import ratio_interval, record

import rlnb
from rlnb.metrics.events import EventReader

CASE = Case("Isaac-Ant-Direct", 128, 14)
"""The number of envs is per rank."""


def rate(logs: Path) -> float:
    """Return the iterations per second of a training."""
    reader = EventReader(logs, without="system")
    reader.refresh()
    times = [wall_time for _, wall_time, _ in reader.scalars["Perf/total_fps"]][SKIPPED:]
    return (len(times) - 1) / (times[-1] - times[0])


def independent(folder: Path) -> float:
    """Return the mean rate of two simultaneous stock trainings."""
    trainings = []
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        with open(folder / f"{name}.log", "wb") as log:
            command = stock_command(CASE, CASE.iterations)
            trainings.append(subprocess.Popen(command, cwd=folder / name, stdout=log, stderr=subprocess.STDOUT))
    if any(training.wait() for training in trainings):
        raise SystemExit(f"isaaclab train failed. See the logs in {folder}.")
    return sum(rate(folder / name / "logs") for name in ("a", "b")) / 2


def ranks(count: int) -> float:
    """Return the rate of one training with ``count`` ranks."""
    run = rlnb.train(
        CASE.task,
        num_envs=count * CASE.num_envs,
        max_iterations=CASE.iterations,
        nproc_per_node=count,
        device="cpu",
        warm=False,
    )
    return rate(run.wait().path / "logs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    rlnb.task_card(CASE.task)
    rlnb.simulator().close()
    found = []
    for number in range(pairs):
        pair = {}
        for side in ("ranks", "independent") if number % 2 else ("independent", "ranks"):
            pair[side] = ranks(2) if side == "ranks" else independent(base / str(number))
        found.append((pair["ranks"], pair["independent"]))
        print(found[-1], flush=True)
    alone = [ranks(1) for _ in range(3)]
    ratio, low, high = ratio_interval(found)
    record(
        f"{CASE.task}, {CASE.num_envs} envs per rank: iterations/s, 2 CPU ranks / 2 simultaneous stock trainings",
        f"{ratio:.3f} ({low:.3f} to {high:.3f}), {pairs} pairs; 2 ranks {sum(a for a, _ in found) / pairs:.2f}/s, "
        f"1 rank alone {sum(alone) / len(alone):.2f}/s",
        ">= 0.90",
        ratio >= 0.90,
    )


if __name__ == "__main__":
    main()
