"""Replays of trainings that met an infinite reward: are all repeated steps equal, and how soon is the replay ready?

    python benchmarks/replay.py [--each 3] [--num-envs 512]

The tasks are a Direct and a manager-based cart-pole, and an ant with contacts. Each reward has random numbers of its
own, and episodes are short, so that envs are reset during the repeated steps.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

DIRECT = """
import torch
from isaaclab.utils import configclass
from {module}_env import {name}Env
from {module}_env_cfg import {name}EnvCfg

@configclass
class PlantedCfg({name}EnvCfg):
    episode_length_s: float = {episode_s}

class PlantedEnv({name}Env):
    clock = -1

    def _get_rewards(self):
        self.clock += 1
        reward = super()._get_rewards() + torch.rand(self.num_envs)
        if self.clock == {step}:
            reward[{env}] = float("inf")
        return reward
"""
MANAGER_BASED = """
import torch
from isaaclab.managers import RewardTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def planted(env):
    reward = torch.rand(env.num_envs)
    if env.common_step_counter == {step} + 1:
        reward[{env}] = float("inf")
    return reward

@configclass
class PlantedCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.episode_length_s = {episode_s}
        self.rewards.planted = RewardTermCfg(func=planted, weight=0.1)
"""
CARTPOLE = {"module": "isaaclab_tasks.core.cartpole.cartpole_direct", "name": "Cartpole", "episode_s": 0.5}
ANT = {"module": "isaaclab_tasks.core.locomotion.ant.ant_direct", "name": "Ant", "episode_s": 0.5}
TASKS = {"direct": (DIRECT, CARTPOLE), "manager-based": (MANAGER_BASED, CARTPOLE), "ant": (DIRECT, ANT)}


def replayed(kind: str, seed: int, num_envs: int) -> tuple[bool, float, int]:
    """Train and replay; return whether all steps were equal, the seconds until it was ready, and their number."""
    chance = random.Random(seed)
    template, values = TASKS[kind]
    plant = {"env": chance.randrange(num_envs), "step": chance.randrange(33, 96), **values}
    source.write_module(rlnb.options.folders, "Planted", template.format(**plant), "-")
    run = rlnb.train("Planted", library="rsl_rl", num_envs=num_envs, max_iterations=20, device="cpu", seed=seed)
    with contextlib.suppress(rlnb.RunError):
        run.wait(600)
    begin_s = time.monotonic()
    replay = run.replay()
    ready_s = time.monotonic() - begin_s
    replay.step(steps=len(replay.steps))
    print(
        f"  {kind}, seed {seed}: {ready_s:.1f} s, {replay.compared} compared, {replay.differences or 'equal'}",
        flush=True,
    )
    return not replay.differences and not replay.missing, ready_s, replay.compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--num-envs", type=int, default=512)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    outcomes = [replayed(kind, seed, arguments.num_envs) for kind in TASKS for seed in range(arguments.each)]
    equal, ready_s, steps = (list(values) for values in zip(*outcomes, strict=True))
    record(
        f"replays of trainings of {', '.join(TASKS)} tasks, {arguments.num_envs} envs: equal bit by bit, ready",
        f"{sum(equal)} of {len(equal)}, {sum(steps)} steps compared, ready in {max(ready_s):.1f} s at most",
        "all, <= 15 s",
        all(equal) and max(ready_s) <= 15.0,
    )


if __name__ == "__main__":
    main()
