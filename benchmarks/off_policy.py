"""Frames until cartpole is balanced: off-policy libraries against PPO of the same library, three seeds each.

    python benchmarks/off_policy.py

Every checkpoint of a training is evaluated, from the first one on. Cartpole counts survival as success, and an
untrained policy, which hardly moves the cart and leaves the pole hanging, survives too. So the mean return must also be
that of a balanced pole. PPO trains with the task's own agent config, at the same number of envs. The off-policy
libraries train for at most half of the frames that PPO needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb

TASK, SEEDS, EPISODES = "Isaac-Cartpole-Direct", (3, 4, 5), 128
"""The configs of the off-policy libraries were chosen with other seeds."""
SUCCESS, RETURN = 0.95, 4.0
"""Rate of success, and mean return of about 5 at most, from which the pole counts as balanced."""
ENVS = 64
"""Number of envs, for which the generic configs of the off-policy libraries are made."""
PPO_FRAMES, SHARE = 122_880, 0.5
"""Frames of PPO's trainings, and the share of those it needed that the off-policy libraries get.

A training of PPO that does not get there counts as if its last policy had balanced the pole.
"""
BETWEEN = 2048
"""Frames between two checkpoints: an iteration."""
PPO = {"skrl_sac": "skrl", "skrl_td3": "skrl", "rl_games_sac": "rl_games"}
HORIZON = 32
"""Env steps per iteration in the agent configs of all of these libraries."""


def first_balance(library: str, frames: float, seed: int) -> float:
    """Return the frames of the first checkpoint whose policy balances the pole; infinity if none does."""
    path, every = (
        ("params.config.save_frequency", 1)
        if library.startswith("rl_games")
        else ("agent.experiment.checkpoint_interval", HORIZON)
    )
    run = rlnb.train(
        rlnb.task(TASK, num_envs=ENVS),
        library=library,
        seed=seed,
        max_iterations=int(frames // BETWEEN),
        agent={path: every},
        device="cpu",
    ).wait()
    for checkpoint, iteration in zip(run.checkpoints, run.checkpoints.iterations, strict=True):
        if iteration is None:
            continue
        evaluation = run.evaluate(EPISODES, num_envs=EPISODES, checkpoint=checkpoint)
        print(f"{library}, seed {seed}, {checkpoint.name}: {evaluation.success_rate}, {evaluation.mean_return:.2f}")
        if (evaluation.success_rate or 0.0) >= SUCCESS and evaluation.mean_return >= RETURN:
            assert run.started is not None
            assert run.started.horizon * ENVS == BETWEEN
            return (iteration + 1) * BETWEEN
    return float("inf")


def text(frames: Sequence[float], limit: float) -> str:
    """Return numbers of frames as text, seed by seed; ``limit`` is the number of frames of each training."""
    return ", ".join(f"{value:,.0f}" if value <= limit else f"none within {limit:,.0f}" for value in frames)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=sorted(PPO), choices=sorted(PPO))
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    bases = {
        base: [first_balance(base, PPO_FRAMES, seed) for seed in SEEDS]
        for base in sorted({PPO[library] for library in arguments.libraries})
    }
    for library in arguments.libraries:
        base = bases[PPO[library]]
        limit = BETWEEN * (SHARE * statistics.median(min(frames, PPO_FRAMES) for frames in base) // BETWEEN)
        own = [first_balance(library, limit, seed) for seed in SEEDS]
        record(
            f"{library} against PPO of {PPO[library]}, {TASK}: frames to success {SUCCESS} with return {RETURN}",
            f"seeds {SEEDS}: {text(own, limit)}; PPO {text(base, PPO_FRAMES)}",
            f"the median at most {SHARE} of PPO's",
            statistics.median(own) <= limit,
        )


if __name__ == "__main__":
    main()
