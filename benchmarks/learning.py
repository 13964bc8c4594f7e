"""Checks that each library learns through rlnb: success rate over three seeds, and after kill -9 and resume.

    python benchmarks/learning.py

Cartpole with 256 envs and the same number of frames for each library. One more run of each library is killed at a
random iteration and resumed. It has to restore everything in its checkpoint bit by bit, and to reach the success rate
of the uninterrupted runs.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

import psutil
from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.studies import compare_libraries

TASK, NUM_ENVS, SEEDS, EPISODES = "Isaac-Cartpole-Direct", 256, 3, 1024
FRAMES = 150 * 32 * NUM_ENVS
"""Frames of the agent configs of RL-Games and skrl, 150 iterations of 32 steps; RSL-RL's config has half as many."""
AT_ONCE = 2
"""Number of simultaneous trainings; nothing here depends on speed."""
CHECKPOINTS = {
    "rsl_rl": {"save_interval": 10},
    "rl_games": {"params.config.save_frequency": 5},
    "skrl": {},
    "skrl_jax": {},
    "sb3": {},
}
"""Agent values with which each library writes checkpoints often."""
NOISE = 0.05
"""Tolerance for the success rate of a resumed run below the worst uninterrupted run, because three seeds are few."""


def killed_and_resumed(library: str, iterations: int) -> tuple[rlnb.Run, int]:
    """Train, kill -9 the worker at a random iteration after the first checkpoint, resume, and wait.

    Returns:
        The run, and the iteration at which it was killed.
    """
    run = rlnb.train(
        TASK,
        library=library,
        num_envs=NUM_ENVS,
        max_iterations=iterations,
        seed=0,
        agent=CHECKPOINTS[library],
        device="cpu",
        warm=False,
    )
    after = random.randint(iterations // 4, 3 * iterations // 4)
    while not run.checkpoints or run.progress[0] < after:
        time.sleep(0.05)
    handle = run.jobs[-1].handle
    assert handle is not None
    psutil.Process(handle["pid"]).children(recursive=True)[-1].kill()
    killed_at = run.progress[0]
    while run.state != "failed":
        time.sleep(0.1)
    return run.resume().wait(), killed_at


def success(run: rlnb.Run, checkpoint: Path | None = None) -> float:
    """Return the success rate of an evaluation."""
    return run.evaluate(EPISODES, num_envs=NUM_ENVS, checkpoint=checkpoint).success_rate or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=sorted(CHECKPOINTS))
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"  # OpenMP threads of several processes would busy-wait on the same cores
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    for library in arguments.libraries:
        found = compare_libraries(
            TASK,
            [library],
            seeds=SEEDS,
            max_frames=FRAMES,
            num_envs=NUM_ENVS,
            episodes=NUM_ENVS,
            device="cpu",
            launcher=LocalLauncher(max_running=AT_ONCE),
        )
        rates = [success(run) for run in found.runs[library]]
        best = [success(run, run.checkpoints.best()) for run in found.runs[library]]
        for what, of_seeds in (("the last policy", rates), ("the checkpoint with the best reward in training", best)):
            record(
                f"{library}, {TASK}, {NUM_ENVS} envs, {FRAMES:,} frames: success from reset of {what}, {SEEDS} seeds",
                f"{', '.join(f'{rate:.3f}' for rate in of_seeds)} over {EPISODES} episodes each",
                ">= 0.95",
                min(of_seeds) >= 0.95,
            )
        unbroken = found.runs[library][0]
        run, killed_at = killed_and_resumed(library, unbroken.progress[1])
        started, rate = run.started, success(run)
        assert started is not None
        whole = run.metrics["fps"].iterations == [float(n) for n in range(started.max_iterations)]
        back = all(report.startswith("restored") for report in started.restored.values())
        record(
            f"{library}: kill -9 and resume",
            f"killed at {killed_at}, resumed at {started.first_iteration} of {started.max_iterations}; one curve: "
            f"{whole}; bit-equal to the checkpoint: {back} ({', '.join(started.restored)}); success {rate:.3f}",
            f"counters continue, bit-equal, success at most {NOISE} below the worst uninterrupted run",
            whole and back and rate >= min(rates) - NOISE,
        )


if __name__ == "__main__":
    main()
