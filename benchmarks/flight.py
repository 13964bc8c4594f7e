"""Values that are not finite, planted into trainings of four libraries: is the env, the term and the step named?

    python benchmarks/flight.py [--libraries rsl_rl rl_games skrl sb3] [--each 10]

Each training gets a value in a reward term, an observation, an action or a joint state, at a random env and step. It is
named if the record has the kind, the env and the step, and if the training has finished no further iteration.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

NUM_ENVS, ITERATIONS = 64, 8
DIRECT = """
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class PlantedCfg(CartpoleEnvCfg):
    pass

class PlantedEnv(CartpoleEnv):
    count = -1

    def step(self, action):
        self.count += 1
        if self.count == {step} and "{kind}" == "action":
            action[{env}] = float("{value}")
        return super().step(action)

    def _apply_action(self):
        super()._apply_action()
        if self.count == {step} and "{kind}" == "state":
            speeds = self.joint_vel.torch.clone() if hasattr(self.joint_vel, "torch") else self.joint_vel.clone()
            speeds[{env}] = float("{value}")
            self.cartpole.write_joint_velocity_to_sim(speeds)

    def _get_observations(self):
        observations = super()._get_observations()
        if self.count == {step} and "{kind}" == "observation":
            observations["policy"][{env}, 2] = float("{value}")
        return observations
"""
MANAGER_BASED = """
import torch
from isaaclab.managers import RewardTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def planted(env):
    reward = torch.ones(env.num_envs, device=env.device)
    if env.common_step_counter == {step} + 1:
        reward[{env}] = float("{value}")
    return reward

@configclass
class PlantedCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.rewards.planted = RewardTermCfg(func=planted, weight=0.1)
"""
KINDS = [(kind, value) for kind in ("term", "observation", "action", "state") for value in ("nan", "inf")]


def named(library: str, kind: str, value: str, seed: int) -> bool:
    """Train with a planted value; return whether it is named."""
    chance = random.Random(seed)
    env, step = chance.randrange(NUM_ENVS), chance.randrange(4, 60)
    template = MANAGER_BASED if kind == "term" else DIRECT
    source.write_module(
        rlnb.options.folders, "Planted", template.format(kind=kind, env=env, step=step, value=value), "-"
    )
    run = rlnb.train("Planted", library=library, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu", seed=seed)
    with contextlib.suppress(rlnb.RunError):
        run.wait(300)
    flight = run.flight
    where = None if flight is None else (flight.kind, flight.env, flight.step)
    iteration = flight.iteration if flight is not None and flight.iteration is not None else ITERATIONS
    ended = run.state == "failed" and run.progress[0] <= iteration + 1
    found = where == (kind, env, step) and (ended or "goes on" in run.logs())
    outcome = "named" if found else "MISSED"
    print(f"  {library}, {kind} {value} in env {env}, step {step}: {outcome}, {where}, {run.state}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="*", default=["rsl_rl", "rl_games", "skrl", "sb3"])
    parser.add_argument("--each", type=int, default=10)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    outcomes = [
        named(library, *KINDS[number % len(KINDS)], seed=100 * place + number)
        for place, library in enumerate(arguments.libraries)
        for number in range(arguments.each)
    ]
    record(
        f"values that are not finite in trainings of {', '.join(arguments.libraries)}: env, term and step named",
        f"{sum(outcomes)} of {len(outcomes)}",
        "40 of 40",
        sum(outcomes) == len(outcomes) >= 40,
    )


if __name__ == "__main__":
    main()
