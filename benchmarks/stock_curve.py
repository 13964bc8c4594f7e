"""Compares a whole training through rlnb with stock, scalar by scalar.

If a library learns badly, the comparison shows whether rlnb is the cause.

    python benchmarks/stock_curve.py --library rl_games --seed 1

Cartpole, 256 envs, 150 iterations of 32 steps. Both sides run at the same time, because nothing here depends on speed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from against_isaaclab import Case, asset_root, stock_command, timed
from results import record

import rlnb
from rlnb.metrics.events import EventReader

CASE = Case("Isaac-Cartpole-Direct", 256, 150)
ON_FEW_ENVS = {"rl_games": ["agent.params.config.minibatch_size=1024"]}
"""Overrides without which stock refuses to start, because 256 envs do not fill RL-Games' minibatches. rlnb's plugin
sets the same size by itself."""
OURS_ALONE = {"info/action_std"}
"""Tags that rlnb's plugins log in addition to stock's."""
REWARD = {"rl_games": "rewards/step", "rsl_rl": "Train/mean_reward", "skrl": "Reward / Total reward (mean)"}


def scalars(logs: Path) -> dict[str, list[float]]:
    """Return the logged scalars by tag, without times and rates."""
    reader = EventReader(logs, without="system")
    reader.refresh()
    return {
        tag: [value for _, _, value in column]
        for tag, column in reader.scalars.items()
        if not tag.startswith(("Perf/", "performance/")) and tag not in OURS_ALONE and not timed(tag)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="rl_games", choices=sorted(REWARD))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    os.environ["OMP_NUM_THREADS"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = folder / "rlnb"
    command = stock_command(CASE, CASE.iterations, arguments.library)
    command[command.index("--seed") + 1] = str(arguments.seed)
    with open(folder / "stock.log", "wb") as log:
        stock = subprocess.Popen(
            [*command, *ON_FEW_ENVS.get(arguments.library, [])], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    run = rlnb.train(
        CASE.task,
        library=arguments.library,
        num_envs=CASE.num_envs,
        max_iterations=CASE.iterations,
        seed=arguments.seed,
        device="cpu",
        warm=False,
    ).wait()
    assert stock.wait() == 0, (folder / "stock.log").read_text()[-2000:]
    ours, theirs = scalars(run.path / "logs"), scalars(folder / "logs")
    equal = [tag for tag in theirs if ours.get(tag) == theirs[tag]]
    reward = REWARD[arguments.library]
    case = f"{arguments.library}, {CASE.task}, {CASE.num_envs} envs, seed {arguments.seed}"
    record(
        f"{case}: a whole training, rlnb and stock",
        f"{len(equal)} of {len(theirs)} tags bit-equal over {CASE.iterations} iterations; last reward "
        f"{ours[reward][-1]:.2f} and {theirs[reward][-1]:.2f}",
        "bit-equal",
        len(equal) == len(theirs) and set(ours) == set(theirs),
    )


if __name__ == "__main__":
    main()
