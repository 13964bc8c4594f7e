"""Measures PhysX outside of Isaac Sim (OvPhysX) on a CPU: rlnb against stock, learning, and both engines.

    python benchmarks/physx.py equal           # scalars of rlnb and of two stock runs
    python benchmarks/physx.py rate            # steps/s of a training, rlnb / stock
    python benchmarks/physx.py learning        # success of four libraries, three seeds each
    python benchmarks/physx.py engines         # env steps/s, OvPhysX / Newton

Needs an environment with rlnb[physx]. Without CUDA, stock ``isaaclab train`` fails with OvPhysX, so it gets rlnb's fix
for pinned memory here (``against_isaaclab.WITH_PINNED_MEMORY``). ``rate`` pauses one side while the other one trains
(see ``steps_per_s.py``). ``engines`` makes the env of each engine in a process of its own, with one torch thread. The
two take turns: one waits for a line of its input while the other one steps with random actions. OvPhysX has threads of
its own, so steps per CPU second are compared too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from against_isaaclab import EQUAL_ITERATIONS, Case, asset_root, ours, stock
from results import ratio_interval, record
from steps_per_s import ratios
from turns import horizon_of

import rlnb
from rlnb.studies import compare_libraries

PHYSICS, NEWTON = "ovphysx", "newton_mjwarp"
TASK = "Isaac-Cartpole-Direct"
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
LEARNING_ENVS, EPISODES = 256, 1024
FRAMES = 150 * 32 * LEARNING_ENVS
"""As in learning.py, so that the rates can be compared with those of Newton."""
ENGINES = ((TASK, 64), (TASK, 512), (TASK, 1024), ("Isaac-Ant-Direct", 64), ("Isaac-Ant-Direct", 512))
"""Tasks and numbers of envs whose env steps/s are compared."""


def equal(num_envs: int) -> None:
    """Compare the scalars of rlnb with stock's, and those of two stock runs with each other."""
    case = Case(TASK, num_envs, EQUAL_ITERATIONS, PHYSICS)
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    scalars = []
    for name in ("first", "second"):
        (base / name).mkdir()
        scalars.append(stock(case, base / name).scalars)
    mine = ours(case, base / "ours", warm=False).scalars
    first, second = scalars
    texts = [
        f"{what}: {sum(one[tag] == other.get(tag) for tag in one)} of {len(one)} tags bit-equal"
        for what, one, other in (("stock and stock", first, second), ("rlnb and stock", first, mine))
    ]
    record(
        f"OvPhysX, {TASK}, {num_envs} envs: scalars of {EQUAL_ITERATIONS} iterations",
        "; ".join(texts),
        "as equal as two stock runs",
        all(mine.get(tag) == first[tag] for tag in first if first[tag] == second.get(tag)) and bool(first),
    )


def rate(num_envs: int, starts: int, pairs: int, turns: int, turn_s: float) -> None:
    """Compare the steps/s of a training through rlnb with stock's."""
    case = Case(TASK, num_envs, 0, PHYSICS)
    measured = ratios(case, "rsl_rl", starts, pairs, turns, turn_s, "cpu")
    median, low, high = ratio_interval(measured)
    frames = statistics.median(ours for ours, _ in measured) * num_envs * horizon_of(case, "rsl_rl")
    record(
        f"OvPhysX, rsl_rl, {TASK}, {num_envs} envs: steps/s, rlnb / stock",
        f"{median:.3f} ({low:.3f} to {high:.3f}), {len(measured)} pairs in {starts} starts, "
        f"{turns} turns of {turn_s:g} s each; {frames:,.0f} steps/s",
        "median >= 0.98, low >= 0.95",
        median >= 0.98 and low >= 0.95,
    )


def learning(libraries: Sequence[str], seeds: int, frames: int, episodes: int) -> None:
    """Check that each library learns on OvPhysX."""
    os.environ["OMP_NUM_THREADS"] = "1"
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    task = rlnb.task(TASK, physics=PHYSICS)
    for library in libraries:
        comparison = compare_libraries(
            task, [library], seeds=seeds, max_frames=frames, num_envs=LEARNING_ENVS, episodes=episodes, device="cpu"
        )
        last = [evaluation.success_rate or 0.0 for evaluation in comparison.evaluations[library]]
        runs = comparison.runs[library]
        best = [run.evaluate(episodes, checkpoint=run.checkpoints.best()).success_rate or 0.0 for run in runs]
        for policy, rates in (("the last policy", last), ("the checkpoint with the best reward in training", best)):
            record(
                f"OvPhysX, {library}, {TASK}, {LEARNING_ENVS} envs, {frames:,} frames: success from reset of {policy}, "
                f"{seeds} seeds",
                f"{', '.join(f'{rate:.3f}' for rate in rates)} over {episodes} episodes each",
                ">= 0.95",
                min(rates) >= 0.95,
            )


class Engine:
    """A process with an env, which steps on request.

    Args:
        task: Id of the task.
        num_envs: Number of envs.
        physics: Physics selector.
        device: ``"cpu"`` or ``"cuda:0"``.
    """

    def __init__(self, task: str, num_envs: int, physics: str, device: str = "cpu") -> None:
        argv = [sys.executable, __file__, "serve", "--task", task, "--envs", str(num_envs), "--physics", physics]
        argv += ["--device", device]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def steps(self, seconds: float) -> tuple[float, float]:
        """Step for some time; return the env steps per second and per CPU second."""
        requests, answers = self._pipes()
        requests.write(f"{seconds}\n")
        requests.flush()
        for line in answers:
            if line.startswith("STEPS "):
                per_s, per_cpu_s = json.loads(line.removeprefix("STEPS "))
                return per_s, per_cpu_s
        raise RuntimeError("the process with the env has ended; its error is above")

    def close(self) -> None:
        self._pipes()[0].close()
        self._process.wait()

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def serve(task: str, num_envs: int, physics: str, device: str) -> None:
    """Make an env, and step it with random actions for as many seconds as each line of the input says."""
    import torch

    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    isaaclab.start()
    with environment(rlnb.task(task, num_envs=num_envs, physics=physics), None, device=device) as (env, _):
        env.reset()
        step(env, torch, 0.5)  # loads kernels
        for line in sys.stdin:
            print("STEPS", json.dumps(step(env, torch, float(line))), flush=True)


def step(env: Any, torch: Any, seconds: float) -> tuple[float, float]:
    """Step an env for some time; return the env steps per second and per CPU second."""
    count, begun, cpu_s = 0, time.perf_counter(), time.process_time()
    device = env.unwrapped.device
    while time.perf_counter() - begun < seconds:
        env.step(2.0 * torch.rand(env.action_space.shape, device=device) - 1.0)
        count += env.unwrapped.num_envs
    if "cuda" in device:
        torch.cuda.synchronize(device)
    return count / (time.perf_counter() - begun), count / (time.process_time() - cpu_s)


def engines(cases: Sequence[tuple[str, int]], pairs: int, seconds: float) -> None:
    """Compare the env steps/s of both engines."""
    for task, num_envs in cases:
        physx, newton = (Engine(task, num_envs, physics) for physics in (PHYSICS, NEWTON))
        measured = []
        for engine in (physx, newton):
            engine.steps(seconds)  # warms up
        for pair in range(pairs):
            order = (physx, newton) if pair % 2 == 0 else (newton, physx)
            rates = {engine: engine.steps(seconds) for engine in order}
            measured.append((rates[physx], rates[newton]))
        for engine in (physx, newton):
            engine.close()
        for index, unit in enumerate(("second", "CPU second")):
            values = [(of_physx[index], of_newton[index]) for of_physx, of_newton in measured]
            median, low, high = ratio_interval(values)
            of_each = [statistics.median(side) for side in zip(*values, strict=True)]
            record(
                f"{task}, {num_envs} envs, random actions: env steps per {unit}, OvPhysX / Newton",
                f"{median:.2f} ({low:.2f} to {high:.2f}), {pairs} pairs of {seconds:g} s; "
                f"{of_each[0]:,.0f} and {of_each[1]:,.0f}",
                "none",
                True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("equal", help="scalars")
    part.add_argument("--envs", type=int, default=512)
    part = parts.add_parser("rate", help="steps/s of a training, rlnb / stock")
    part.add_argument("--envs", type=int, default=512)
    part.add_argument("--starts", type=int, default=3)
    part.add_argument("--pairs", type=int, default=4, help="pairs per start of both sides")
    part.add_argument("--turns", type=int, default=6)
    part.add_argument("--turn-s", type=float, default=8.0)
    part = parts.add_parser("learning", help="success of the libraries")
    part.add_argument("--libraries", nargs="+", default=LIBRARIES)
    part.add_argument("--seeds", type=int, default=3)
    part.add_argument("--frames", type=int, default=FRAMES)
    part.add_argument("--episodes", type=int, default=EPISODES)
    part = parts.add_parser("engines", help="env steps/s, OvPhysX / Newton")
    part.add_argument("--case", type=int, choices=range(len(ENGINES)), help="run only this case")
    part.add_argument("--pairs", type=int, default=10)
    part.add_argument("--seconds", type=float, default=6.0)
    part = parts.add_parser("serve", help="step an env on request; engines starts this")
    part.add_argument("--task", required=True)
    part.add_argument("--envs", type=int, required=True)
    part.add_argument("--physics", required=True)
    part.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    match arguments.part:
        case "equal":
            equal(arguments.envs)
        case "rate":
            rate(arguments.envs, arguments.starts, arguments.pairs, arguments.turns, arguments.turn_s)
        case "learning":
            learning(arguments.libraries, arguments.seeds, arguments.frames, arguments.episodes)
        case "engines":
            cases = ENGINES if arguments.case is None else ENGINES[arguments.case : arguments.case + 1]
            engines(cases, arguments.pairs, arguments.seconds)
        case "serve":
            serve(arguments.task, arguments.envs, arguments.physics, arguments.device)


if __name__ == "__main__":
    main()
