"""Runs of another commit under this one: read, awaited, cancelled, resumed, evaluated, exported.

    git worktree add --detach ../before HEAD~1
    python benchmarks/across.py --other ../before

A kernel of the other commit starts each run and ends. Its jobs go on with the code of the other commit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from results import record

import rlnb

HERE = Path(__file__).resolve().parents[1]
WAIT_S = 300.0
CELL = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class MineCfg(CartpoleEnvCfg):
    episode_length_s = 2.0

class MineEnv(CartpoleEnv):
    pass
"""
ECHO = "rlnb.train('Echo', library='echo', max_iterations={}, agent={{'iteration_s': {}}}, warm=False, tags=[{!r}])"


def path_of(checkout: Path) -> str:
    """Return the ``PYTHONPATH`` of a checkout with its plugins."""
    return os.pathsep.join(map(str, (checkout, *sorted(checkout.glob("plugins/*/src")))))


def start(other: Path, root: Path, code: str) -> None:
    """Run code in a kernel of another checkout that ends at once."""
    code = f"import rlnb\nassert rlnb.__file__.startswith({str(other)!r})\nrlnb.options.root = {str(root)!r}\n{code}"
    environment = {**os.environ, "PYTHONPATH": path_of(other)}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True)


def tagged(tag: str) -> rlnb.Run:
    """Return the run with a tag."""
    (run,) = rlnb.runs(tag=tag)
    return run


def ended(other: Path, root: Path) -> str:
    start(other, root, ECHO.format(3, 0.05, "ended") + ".wait()")
    run = tagged("ended")
    assert run.state == "completed"
    assert run.metrics["reward"].iterations[-1] == 2
    run.resume(max_iterations=6).wait(WAIT_S)
    return f"{run.state}, iteration {run.progress[0]}"


def running(other: Path, root: Path) -> str:
    start(other, root, "run = " + ECHO.format(10_000, 0.1, "running") + "\nwhile run.progress[0] < 2: pass")
    run = tagged("running")
    assert run.state == "running"
    run.cancel().wait(WAIT_S)
    return run.state


def queued(other: Path, root: Path) -> str:
    start(other, root, "\n".join(ECHO.format(40, 0.1, tag) for tag in ("first", "second")))
    runs = [tagged("first"), tagged("second")]
    states = {run.state for run in runs}
    assert "queued" in states
    for run in runs:
        run.wait(WAIT_S)
    return f"{' and '.join(sorted(states))}, then {' and '.join(run.state for run in runs)}"


def of_a_cell(other: Path, root: Path) -> str:
    code = f"rlnb.define('Mine', {CELL!r})\n"
    code += "rlnb.train('Mine', library='rsl_rl', num_envs=16, max_iterations=2, device='cpu', tags=['cell']).wait()"
    start(other, root, code)
    run = tagged("cell")
    evaluation = run.evaluate(episodes=8)
    exported = [path.name for path in run.export().values()]
    again = run.rerun(tags=["again"]).wait(WAIT_S)
    equal = list(again.metrics["reward"].values) == list(run.metrics["reward"].values)
    return f"{evaluation.episodes} episodes, {', '.join(sorted(exported))}, the same curve again: {equal}"


CASES: dict[str, tuple[Callable[[Path, Path], str], str]] = {
    "an ended run is read and resumed": (ended, "completed, iteration 6"),
    "a running training is cancelled": (running, "cancelled"),
    "trainings in this machine's queue end": (queued, "then completed and completed"),
    "a run of a cell is evaluated, exported and repeated": (of_a_cell, "the same curve again: True"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True)
    other = parser.parse_args().other.resolve()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=other, capture_output=True, text=True, check=True
    ).stdout.strip()
    for what, (case, expected) in CASES.items():
        rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-across-"))
        try:
            found = case(other, Path(rlnb.options.root))
        except (rlnb.RlnbError, AssertionError, subprocess.CalledProcessError) as exc:
            found = f"{type(exc).__name__}: {exc}"
        record(f"of commit {commit}: {what}", found, expected, found.endswith(expected))


if __name__ == "__main__":
    main()
