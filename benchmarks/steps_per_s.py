"""Compares the steps/s of rlnb with stock ``isaaclab train``, with both running and taking turns.

    python benchmarks/steps_per_s.py --library rsl_rl
    python benchmarks/steps_per_s.py --auto                # rlnb's side with nproc_per_node="auto"
    python benchmarks/steps_per_s.py --case 0 --device cuda:0 --num-envs 4096

``turns.py`` says how. Several pairs of rates come from the same two processes; then both are restarted. The ratio of a
pair is that of rlnb's iterations per second in its own turns to stock's.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from against_isaaclab import CASES, Case, asset_root
from results import ratio_interval, record
from turns import PRINTED, horizon_of, led_in, our_side, stock_side
from turns import pairs as turns_of

import rlnb

AUTO = (
    (Case("Isaac-Cartpole-Camera-Direct", 32, 0), 1.25),
    (Case("Isaac-Ant-Direct", 1024, 0), 1.0),
    (Case("Isaac-Cartpole-Direct", 512, 0), 0.97),
)
"""Tasks, each with the lower bound of its ratio with ``nproc_per_node="auto"``."""


def pairs_of(
    case: Case, library: str, folder: Path, pairs: int, turns: int, turn_s: float, device: str, **arguments: Any
) -> Iterator[tuple[float, float]]:
    """Start both sides; yield rlnb's and stock's iterations per second ``pairs`` times."""
    folder.mkdir()
    with (
        stock_side(case, library, folder, device) as stock,
        our_side(case, library, device, **arguments) as (ours, _),
    ):
        led_in((ours, stock))
        yield from itertools.islice(turns_of(ours, stock, turns, turn_s), pairs)


def ratios(
    case: Case, library: str, starts: int, pairs: int, turns: int, turn_s: float, device: str, **arguments: Any
) -> list[tuple[float, float]]:
    """Measure one case; return rlnb's and stock's iterations per second of each pair."""
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    case.selected.card()
    from rlnb.simulation.pool import pool

    pool.shut_down()
    if arguments:  # the number that "auto" stands for is measured once, on the idle machine
        rlnb.train(
            case.selected, library=library, num_envs=case.num_envs, device=device, max_iterations=1, **arguments
        ).wait()
    found = []
    for start in range(starts):
        for ours, stock in pairs_of(case, library, base / str(start), pairs, turns, turn_s, device, **arguments):
            found.append((ours, stock))
            text = f"{ours:.4f} and {stock:.4f} iterations/s, {ours / stock:.3f}"
            print(f"{library}, {case.task} start {start}: {text}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=sorted(PRINTED), default="rsl_rl")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=4, help="pairs per start of both sides")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--turn-s", type=float, default=8.0)
    parser.add_argument("--auto", action="store_true", help='rlnb with nproc_per_node="auto"')
    parser.add_argument("--case", type=int, choices=range(len(AUTO)), help="run only this case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, help="number of envs in place of the case's")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    cases = AUTO if arguments.auto else tuple((case, 0.98) for case in CASES)
    for index, (case, least) in enumerate(cases):
        if arguments.case not in (None, index):
            continue
        case = replace(case, num_envs=arguments.num_envs or case.num_envs)
        options = {"nproc_per_node": "auto"} if arguments.auto else {}
        how_often = arguments.starts, arguments.pairs, arguments.turns, arguments.turn_s
        pairs = ratios(case, arguments.library, *how_often, arguments.device, **options)
        median, low, high = ratio_interval(pairs)
        how = 'nproc_per_node="auto" / stock' if arguments.auto else "rlnb / stock"
        frames = statistics.median(ours for ours, _ in pairs) * case.num_envs * horizon_of(case, arguments.library)
        gpu = "" if arguments.device == "cpu" else "GPU, "
        holds = median >= least if arguments.auto else median >= least and low >= 0.95
        record(
            f"{gpu}{arguments.library}, {case.task}, {case.num_envs} envs: steps/s, {how}",
            f"{median:.3f} ({low:.3f} to {high:.3f}), {len(pairs)} pairs in {arguments.starts} starts, "
            f"{arguments.turns} turns of {arguments.turn_s:g} s each; {frames:,.0f} steps/s",
            f"median >= {least}" + ("" if arguments.auto else ", low >= 0.95"),
            holds,
        )


if __name__ == "__main__":
    main()
