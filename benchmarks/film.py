"""The price of films during a training: the share of the time that a film every 50 iterations takes.

    python benchmarks/film.py [--runs 5] [--iterations 160] [--num-envs 512]

The env is stepped as a training does, but nothing is learned, so the share of a training's time is smaller. It has the
first film's preparation in it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb

TASK, EVERY, HORIZON = "Isaac-Cartpole-Direct", 50, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=160)
    parser.add_argument("--num-envs", type=int, default=512)
    arguments = parser.parse_args()
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(asset_root())
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    shares = [share(folder / str(number), arguments.num_envs, arguments.iterations) for number in range(arguments.runs)]
    films = [path for path in folder.rglob("*.mp4")]
    size_kib = max(path.stat().st_size for path in films) / 1024
    record(
        f"a film every {EVERY} of {arguments.iterations} iterations, {arguments.num_envs} envs of {TASK} without "
        "learning: share of the time, with the preparation",
        f"median {statistics.median(shares):.1%}, at most {max(shares):.1%}, {len(shares)} runs; {len(films)} films, "
        f"{size_kib:.0f} KiB at most",
        "<= 3 %",
        max(shares) <= 0.03,
    )


def share(folder: Path, num_envs: int, iterations: int) -> float:
    """Step an env that is filmed; return the share of the time that the films took."""
    import torch

    from rlnb.worker.acting import actions
    from rlnb.worker.cameras.films import Films
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    with environment(rlnb.Task(id=TASK, num_envs=num_envs), None, device="cpu") as (env, _):
        raw = isaaclab.task_env(env)
        env.reset(seed=0)
        acts = actions(raw, "random")
        begin_s = time.monotonic()
        films = Films(raw, lambda iteration: folder / f"{iteration}.mp4", EVERY, lambda step: step // HORIZON)
        films.attach()
        with torch.inference_mode():
            for _ in range(iterations * HORIZON):
                raw.step(acts)
        films.close()
        spent_s, whole_s = films.took_s, time.monotonic() - begin_s
    print(f"  {spent_s:.2f} s of {whole_s:.1f} s, {len([*folder.glob('*.mp4')])} films", flush=True)
    return spent_s / whole_s


if __name__ == "__main__":
    main()
