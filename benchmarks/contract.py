"""Checks of each library's contract: immediate scalars, exports that act like the policy, synchronised ranks.

python benchmarks/contract.py
python benchmarks/contract.py --libraries skrl skrl_jax --parts exports ranks
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.hooks import plugins
from rlnb.studies import verify_sync
from rlnb.testing import run_export

TASK, NUM_ENVS, ITERATIONS = "Isaac-Cartpole-Direct", 64, 10
SCALARS, ROWS = 100, 1000
BATCHES = (1, 64, ROWS)
EPISODES = 200
"""Enough episodes for all rows, even with the short episodes of a policy that has hardly learned."""
PARTS = ("scalars", "exports", "ranks")
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "skrl_jax", "sb3")


def scalars(library: str) -> None:
    """Measure the time until a logged scalar is in ``run.metrics``."""
    run = rlnb.train(TASK, library=library, num_envs=16, max_iterations=100_000, device="cpu", warm=False)
    while run.state != "running":
        time.sleep(0.1)
    delays: list[float] = []
    seen = len(run.metrics["fps"])
    while len(delays) < SCALARS:
        points = run.metrics["fps"].points
        now = time.time()
        delays += [now - wall_time for _, wall_time, _ in points[seen:]]
        seen = len(points)
        time.sleep(0.02)
    run.cancel()
    while run.state == "running":
        time.sleep(0.1)
    record(
        f"{library}: logged scalar to run.metrics",
        f"worst of {len(delays)}: {max(delays):.2f} s",
        "<= 1 s",
        max(delays) <= 1,
    )


def exports(library: str) -> None:
    """Compare the actions of exported policies with the policy's own, on the observations of an evaluation."""
    run = rlnb.train(
        TASK, library=library, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu", warm=False
    ).wait()
    evaluation = run.evaluate(episodes=EPISODES, num_envs=8, record=ROWS)
    assert evaluation.rollout is not None
    rollout = np.load(evaluation.rollout)
    observations, actions = rollout["obs.policy"][:ROWS], rollout["actions"][:ROWS]
    assert len(actions) == ROWS
    files = run.export()
    off = {
        name: max(np.abs(run_export(name, path, observations[:n]) - actions[:n]).max() for n in BATCHES)
        for name, path in files.items()
    }
    extra = {path.name for path in (run.path / "exports").iterdir()} - {path.name for path in files.values()}
    record(
        f"{library}: difference between exported actions and the policy's",
        ", ".join(f"{name} {value:.1e}" for name, value in off.items())
        + f" at most, in batches of {', '.join(map(str, BATCHES))} observations; further files: {len(extra)}",
        "<= 1e-5, one file for each format",
        max(off.values()) <= 1e-5 and not extra,
    )


def ranks(library: str) -> None:
    """Verify that two ranks stay synchronised."""
    proof = verify_sync(TASK, library=library, num_envs=NUM_ENVS, device="cpu")
    equal, apart = len(set(proof.parameters)) == 1, len(set(proof.observations)) == 2
    record(
        f"{library}: 2 ranks on a CPU",
        f"parameters equal: {equal}; running statistics equal: {len(set(proof.statistics)) == 1}; "
        f"observations differ: {apart}; parameters of the control differ: {len(set(proof.control)) == 2}",
        "equal, differ, control differs",
        proof.synchronised,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    for library in arguments.libraries:
        if "scalars" in arguments.parts:
            scalars(library)
        if "exports" in arguments.parts and plugins.library(library).exports:
            exports(library)
        if "ranks" in arguments.parts and plugins.library(library).distributed:
            ranks(library)


if __name__ == "__main__":
    main()
