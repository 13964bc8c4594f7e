"""The cost of synchronised ranks: two ranks, compared with two simultaneous, independent stock Isaac Lab trainings.

    python benchmarks/weak_scaling.py [--pairs 10] [--envs 128 512 1024]

Both sides have two processes of one thread each with the same number of envs, so that they share memory and cores
alike. They differ in the all_reduce over ranks, the wait for the slower rank, and rlnb itself. Rates are iterations per
second without the first iterations, from the event files. A single rank of rlnb is measured too.

For each number of envs per rank, the benchmark also divides an iteration of two ranks into its parts: collecting and
learning as RSL-RL logs them for rank 0, the sums over ranks (the all_reduce of the rank that waits least), and the wait
of rank 0 for the other rank. Learning is without both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from against_isaaclab import SKIPPED, Case, asset_root, stock_command
from results import ratio_interval, record

import rlnb
from rlnb.metrics.events import EventReader
from rlnb.records.ranks import ranks_of

CASE = Case("Isaac-Ant-Direct", 128, 14)
"""The number of envs is per rank."""
SUM_BOUND = 0.02
"""Largest share of an iteration that belongs to none of its parts."""


@dataclass(frozen=True, kw_only=True)
class TimeParts:
    """The mean seconds of an iteration of rank 0, without the first iterations."""

    iteration_s: float
    collecting_s: float
    learning_s: float
    sums_s: float
    waiting_s: float

    @property
    def rest(self) -> float:
        """Share of the iteration that belongs to no part, such as logging and checkpoints."""
        return 1.0 - (self.collecting_s + self.learning_s + self.sums_s + self.waiting_s) / self.iteration_s

    def __str__(self) -> str:
        shares = {
            "collecting": self.collecting_s,
            "learning": self.learning_s,
            "sums": self.sums_s,
            "waiting": self.waiting_s,
        }
        each = ", ".join(f"{name} {seconds / self.iteration_s:.1%}" for name, seconds in shares.items())
        return f"{self.iteration_s:.3f} s: {each}, rest {self.rest:.1%}"


def parts_of(run: rlnb.Run) -> TimeParts:
    """Return the parts of an iteration of a training with several ranks on a CPU."""
    times = run.metrics["fps"].wall_time_s[SKIPPED:]
    iteration_s = (times[-1] - times[0]) / (len(times) - 1)
    collecting_s, update_s = (
        statistics.fmean(run.metrics[name].values[SKIPPED + 1 :]) for name in ("collection_s", "learning_s")
    )
    ranks = ranks_of(run.result)
    if ranks is None or len(ranks.communication) < 2:
        raise SystemExit("The time in all_reduce is measured for several ranks on a CPU only. Use device='cpu'.")
    shares = ranks.communication
    return TimeParts(
        iteration_s=iteration_s,
        collecting_s=collecting_s,
        learning_s=update_s - shares[0] * iteration_s,
        sums_s=min(shares) * iteration_s,
        waiting_s=(shares[0] - min(shares)) * iteration_s,
    )


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


def trained(count: int, num_envs: int = CASE.num_envs) -> rlnb.Run:
    """Return a finished training with ``count`` ranks of ``num_envs`` envs."""
    run = rlnb.train(
        CASE.task,
        num_envs=count * num_envs,
        max_iterations=CASE.iterations,
        nproc_per_node=count,
        device="cpu",
        warm=False,
    )
    return run.wait()


def ranks(count: int) -> float:
    """Return the rate of one training with ``count`` ranks."""
    return rate(trained(count).path / "logs")


def measure_parts(num_envs: int) -> None:
    """Measure the parts of an iteration of two ranks, and how it compares with that of a single rank."""
    alone, two = trained(1, num_envs), trained(2, num_envs)
    parts = parts_of(two)
    efficiency = rate(two.path / "logs") / rate(alone.path / "logs")
    record(
        f"{CASE.task}, {num_envs:,} envs per rank: an iteration of 2 CPU ranks, by its parts",
        f"{parts}; {efficiency:.0%} of the rate of 1 rank",
        f"rest within {SUM_BOUND:.0%}",
        abs(parts.rest) <= SUM_BOUND,
    )


def measure_pairs(base: Path, pairs: int) -> None:
    """Compare two ranks with two independent trainings, in turn."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10, help="Pairs of trainings; 0 measures only the parts.")
    parser.add_argument("--envs", type=int, nargs="*", default=[128, 512, 1024], help="Envs per rank, for the parts.")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    CASE.selected.card()
    rlnb.simulator().close()
    for num_envs in arguments.envs:
        measure_parts(num_envs)
    if arguments.pairs:
        measure_pairs(base, arguments.pairs)


if __name__ == "__main__":
    main()
