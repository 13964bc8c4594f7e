"""The price of films during a training: time of a training with a film every 50 iterations, against one without.

python benchmarks/film.py [--pairs 10] [--iterations 160] [--num-envs 512]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import ratio_interval, record

import rlnb

TASK, EVERY = "Isaac-Cartpole-Direct", 50


def seconds(film_every: int | None, arguments: argparse.Namespace, seed: int) -> tuple[float, rlnb.Run]:
    """Train; return the seconds from the first logged iteration to the last."""
    run = rlnb.train(
        TASK,
        library="rsl_rl",
        num_envs=arguments.num_envs,
        max_iterations=arguments.iterations,
        film_every=film_every,
        seed=seed,
        device="cpu",
    ).wait(1200)
    times_s = run.metrics["reward"].array("wall_time")
    return float(times_s[-1] - times_s[0]), run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=160)
    parser.add_argument("--num-envs", type=int, default=512)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.compare_physics = False
    seconds(EVERY, arguments, 0)  # compiles kernels
    ratios, counts, sizes = [], [], []
    for pair in range(arguments.pairs):
        order = (EVERY, None) if pair % 2 else (None, EVERY)
        took_s = {}
        for film_every in order:
            took_s[film_every], run = seconds(film_every, arguments, pair)
            if film_every:
                counts.append(len(run.films))
                sizes += [video.path.stat().st_size / 1024 for video in run.films.values()]
        ratios.append((took_s[EVERY], took_s[None]))
        print(f"  {took_s[EVERY]:.2f} s with films, {took_s[None]:.2f} s without", flush=True)
    ratio, low, high = ratio_interval(ratios)
    record(
        f"a film every {EVERY} of {arguments.iterations} iterations, {arguments.num_envs} envs of {TASK}: time of a "
        "training with films, against one without",
        f"{ratio:.3f} [{low:.3f}, {high:.3f}], {arguments.pairs} pairs; {min(counts)} to {max(counts)} films, "
        f"{max(sizes):.0f} KiB at most",
        "<= 1.03",
        ratio <= 1.03,
    )


if __name__ == "__main__":
    main()
