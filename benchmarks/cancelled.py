"""Cancels trainings of real libraries at random moments: the newest checkpoint must hold the last logged iteration.

    python benchmarks/cancelled.py --tries 20

The trainings are of Isaac Lab's Cartpole with 16 envs, of RSL-RL, RL-Games, skrl and SB3 in turn.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from results import record

import rlnb

LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
START_S, END_S = 180.0, 60.0


def lost(library: str, after_s: float) -> str:
    """Cancel a training some time after its first iteration; return what was lost, or an empty string."""
    run = rlnb.train("Isaac-Cartpole-Direct", library=library, num_envs=16, device="cpu", max_iterations=5000)
    deadline = time.monotonic() + START_S
    while run.state != "running":
        if time.monotonic() > deadline:
            raise RuntimeError(f"{run.id} is {run.state} after {START_S:.0f} s")
        time.sleep(0.02)
    time.sleep(after_s)
    run.cancel()
    state = run.wait(END_S).state
    time.sleep(0.2)
    logged = rlnb.get_run(run.id).metrics["fps"].iterations[-1]
    saved = run.checkpoints.iterations[-1] if run.checkpoints else None
    return "" if (state, saved) == ("cancelled", logged) else f"{library}: {state}, logged {logged}, saved {saved}"


def main() -> None:
    """Cancel trainings and record the share that lost nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20)
    tries = parser.parse_args().tries
    rlnb.options.root, rng = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb", random.Random(0)
    losses = [lost(LIBRARIES[number % len(LIBRARIES)], rng.uniform(0.0, 4.0)) for number in range(tries)]
    losses = [loss for loss in losses if loss]
    print(*losses, sep="\n")
    record(
        f"cancel at a random moment, Isaac-Cartpole-Direct, {', '.join(LIBRARIES)}",
        f"no iteration lost in {tries - len(losses)} of {tries}",
        "20 of 20",
        not losses and tries >= 20,
    )


if __name__ == "__main__":
    main()
