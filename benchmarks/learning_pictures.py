"""Trains the camera task of the cart-pole with the generic agent config of each library, which has a CNN for pictures.

    python benchmarks/learning_pictures.py --minutes 15
    python benchmarks/learning_pictures.py --libraries sb3

64 x 64 pixels, 32 envs. The policy's return over 100 episodes, with sampled actions in the env of the training, is
compared with that of random actions. Then the checkpoint is evaluated as usual, and exported.
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
from scipy.stats import bootstrap

import rlnb
from rlnb.results import EnvStep
from rlnb.simulation.pool import pool

TASK, NUM_ENVS, EPISODES = "Isaac-Cartpole-Camera-Direct", 32, 100
SIZE = {"scene.tiled_camera.width": 64, "scene.tiled_camera.height": 64, "observation_space": [3, 64, 64]}
LIBRARIES = ("rl_games", "rsl_rl", "sb3", "skrl")
LOOK_S = 2.0


def random_returns(task: rlnb.Task) -> np.ndarray:
    """Return the returns of 100 episodes with random actions, four of each env."""
    debugger = rlnb.debug(task, num_envs=EPISODES // 4)
    sums, found = np.zeros(EPISODES // 4), [[] for _ in range(EPISODES // 4)]  # type: ignore[var-annotated]
    while min(map(len, found)) < 4:
        step = debugger.step()
        assert isinstance(step, EnvStep)
        sums += step["rewards"]
        for env in np.flatnonzero(step["terminated"] | step["truncated"]):
            found[env].append(float(sums[env]))
            sums[env] = 0.0
    return np.array([value for of_env in found for value in of_env[:4]])


def interval(returns: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of returns with its 95 % interval."""
    low, high = bootstrap((returns,), np.mean, rng=1).confidence_interval
    return float(returns.mean()), float(low), float(high)


def trained(task: rlnb.Task, library: str, minutes: float) -> rlnb.Run:
    """Train for some minutes, and stop the run as a person does, with a last checkpoint."""
    run = rlnb.train(
        task, library=library, agent="generic", num_envs=NUM_ENVS, max_iterations=100_000, seed=1, device="cpu"
    )
    while run.state in ("queued", "starting"):
        time.sleep(LOOK_S)
    end_s = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end_s and run.state == "running":
        time.sleep(LOOK_S)
    run.cancel()
    while run.state not in ("cancelled", "completed", "failed"):
        time.sleep(LOOK_S)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--minutes", type=float, default=15.0)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    rlnb.options.warm = False
    task = rlnb.task(TASK, overrides=SIZE)
    floor = interval(random_returns(task))
    for library in arguments.libraries:
        run = trained(task, library, arguments.minutes)
        evaluation = run.evaluate(EPISODES, num_envs=NUM_ENVS, mode="train", deterministic=False)
        mean, low, high = interval(np.array(evaluation.returns[:EPISODES]))
        usual, files = run.evaluate(16, num_envs=16), run.export()
        record(
            f"{library}, {TASK}, generic config, 64 x 64, {NUM_ENVS} envs: return over {EPISODES} episodes / at random",
            f"{mean:.1f} ({low:.1f} to {high:.1f}) against {floor[0]:.1f} ({floor[1]:.1f} to {floor[2]:.1f}) after "
            f"{arguments.minutes:g} min, {run.progress[0]} iterations; evaluated: {len(usual.returns)} episodes; "
            f"exported: {', '.join(files)}",
            "above random, intervals apart; evaluates and exports",
            low > floor[2] and bool(files),
        )
    pool.shut_down()


if __name__ == "__main__":
    main()
