"""Compares rlnb with stock ``isaaclab train``: start-up time and scalars, in interleaved pairs.

    python benchmarks/against_isaaclab.py --pairs 10

Each pair runs the stock command and rlnb one after the other, in fresh processes, with the same task, seed, envs and
assets; the order changes from pair to pair. These values are read from the event files of both sides:

- start: from the start of the process, or the call of ``rlnb.train``, to the end of the first iteration;
- warm start: the same for an rlnb run that uses a warm simulator;
- scalars: all tags of the first ten iterations, except times, compared bit by bit.

The steps/s (median of ``Perf/total_fps`` after three iterations) are only printed; ``steps_per_s.py`` compares them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results import record

import rlnb
from rlnb.metrics.columns import Scalar
from rlnb.metrics.events import EventReader

SEED = 7
SKIPPED = 3
EQUAL_ITERATIONS = 10


@dataclass(frozen=True)
class Case:
    """One task of the benchmark."""

    task: str
    num_envs: int
    iterations: int
    physics: str | None = None
    """Physics selector; None for the task's default."""
    presets: tuple[str, ...] = ()
    """Isaac Lab's presets."""
    agent: Mapping[str, Any] = field(default_factory=dict)
    """Agent values by dotted path."""

    @property
    def selected(self) -> rlnb.Task:
        """The task with its physics and its presets."""
        return rlnb.task(self.task, physics=self.physics, presets=self.presets)


CASES = (Case("Isaac-Cartpole-Direct", 512, 15), Case("Isaac-Cartpole-Camera-Direct", 16, 11))


@dataclass(frozen=True)
class Outcome:
    """The results of one run."""

    steps_per_s: float
    start_s: float
    scalars: dict[str, list[float]]


ON_CPU = {
    "rsl_rl": ["agent.device=cpu"],
    # RL-Games compiles by default, which takes minutes on a CPU; rlnb's plugin turns it off too.
    "rl_games": [f"agent.params.config.{word}" for word in ("device=cpu", "device_name=cpu", "torch_compile=False")],
    "skrl": [],
    "sb3": ["agent.device=cpu"],
}
"""Overrides that each library needs on a CPU in addition to ``--device cpu``."""


WITH_PINNED_MEMORY = (
    "from rlnb.worker.isaac.ovphysx import provide_pinned_memory; from isaaclab.__main__ import main; "
    "provide_pinned_memory(); main()"
)
"""``isaaclab`` for OvPhysX on a machine without CUDA, where it fails as published."""


def stock_command(case: Case, iterations: int, library: str = "rsl_rl", device: str = "cpu") -> list[str]:
    """Return the command line of ``isaaclab train``, as documented by Isaac Lab."""
    on_cpu = ON_CPU[library] if device == "cpu" else []
    return [
        *(sys.executable, *(("-c", WITH_PINNED_MEMORY) if case.physics == "ovphysx" else ("-m", "isaaclab"))),
        *("train", "--rl_library", library, "--task", case.task),
        *("--device", device, "--num_envs", str(case.num_envs), "--max_iterations", str(iterations)),
        *("--seed", str(SEED), *on_cpu, *([f"physics={case.physics}"] if case.physics else [])),
        *([f"presets={','.join(case.presets)}"] if case.presets else []),
        *(f"agent.{path}={value}" for path, value in case.agent.items()),
    ]


def stock(case: Case, folder: Path) -> Outcome:
    """Run the stock command to its end."""
    begun = time.time()
    with open(folder / "stock.log", "wb") as log:
        subprocess.run(
            stock_command(case, case.iterations), cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=True
        )
    return outcome(folder / "logs", begun)


def ours(case: Case, folder: Path, *, warm: bool) -> Outcome:
    """Run the same training through rlnb."""
    rlnb.options.root = folder
    begun = time.time()
    run = rlnb.train(
        case.selected,
        num_envs=case.num_envs,
        max_iterations=case.iterations,
        seed=SEED,
        device="cpu",
        warm=warm,
    )
    run.wait()
    return outcome(run.path / "logs", begun)


def outcome(logs: Path, begun: float) -> Outcome:
    """Read the event files of a run."""
    reader = EventReader(logs, without="system")
    reader.refresh()
    fps = list(reader.scalars["Perf/total_fps"])
    rates = sorted(value for _, _, value in fps[SKIPPED:])
    return Outcome(
        steps_per_s=rates[len(rates) // 2],
        start_s=fps[0][1] - begun,
        scalars={tag: first(points) for tag, points in reader.scalars.items() if not timed(tag)},
    )


def first(points: Iterable[Scalar]) -> list[float]:
    return [value for step, _, value in points if step < EQUAL_ITERATIONS]


def timed(tag: str) -> bool:
    return tag.startswith("Perf/") or tag.endswith("/time")


def warm_up(case: Case) -> None:
    """Resolve the task card, so that no pair pays for it; this also starts the warm simulator."""
    case.selected.card()


def compare(case: Case, pairs: int, warm_runs: int) -> None:
    """Run the pairs of one case and record the results."""
    cold: list[tuple[Outcome, Outcome]] = []
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "cards"
    warm_up(case)
    from rlnb.simulation.pool import pool

    pool.shut_down()
    cards = base / "cards" / "cards"
    for index in range(pairs):
        results: dict[str, Outcome] = {}
        for side in ("stock", "ours") if index % 2 else ("ours", "stock"):
            folder = base / f"{index}-{side}"
            (folder / "cards").mkdir(parents=True)
            for card in cards.iterdir():
                shutil.copy(card, folder / "cards")
            results[side] = stock(case, folder) if side == "stock" else ours(case, folder, warm=False)
        cold.append((results["ours"], results["stock"]))
        for side, result in results.items():
            print(
                f"{case.task} {index} {side}: {result.steps_per_s:.0f} steps/s, start {result.start_s:.1f} s",
                flush=True,
            )
    name = f"{case.task}, {case.num_envs} envs"
    extra = sorted(a.start_s - b.start_s for a, b in cold)
    middle = extra[len(extra) // 2]
    stock_start = sorted(b.start_s for _, b in cold)[len(cold) // 2]
    record(
        f"{name}: start to first iteration, rlnb - stock",
        f"{middle:+.2f} s (stock {stock_start:.1f} s)",
        "<= +1 s",
        middle <= 1.0,
    )
    equal = all(a.scalars == b.scalars and a.scalars for a, b in cold)
    tags = len(cold[0][0].scalars)
    record(
        f"{name}: scalars of {EQUAL_ITERATIONS} iterations",
        f"{tags} tags, {'bit-equal' if equal else 'DIFFER'} in {len(cold)} pairs",
        "bit-equal",
        equal,
    )
    starts = []
    for index in range(warm_runs):
        rlnb.options.root = base / "cards"
        shutil.rmtree(base / "cards" / "cards", ignore_errors=True)
        warm_up(case)
        time.sleep(12)  # the time a user needs to read the card; meanwhile, the warm simulator rehearses
        result = ours(case, base / "cards", warm=True)
        starts.append(result.start_s)
        pool.shut_down()
        print(f"{case.task} warm start {index}: {result.start_s:.2f} s", flush=True)
    starts.sort()
    share = starts[len(starts) // 2] / stock_start
    record(
        f"{name}: warm start / stock start", f"{share:.3f} ({starts[len(starts) // 2]:.2f} s)", "<= 0.2", share <= 0.2
    )
    shutil.rmtree(base, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--warm-runs", type=int, default=5)
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="run only this case")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    for index, case in enumerate(CASES):
        if arguments.case in (None, index):
            compare(case, arguments.pairs, arguments.warm_runs)


def asset_root() -> str:
    """Return the folder of the local asset packs, so that both sides load the same files."""
    from rlnb.worker.assets.packs import build

    return str(build().folder)


if __name__ == "__main__":
    main()
