"""Trainings that learn badly on purpose, and healthy ones: what does their diagnosis say?

    python benchmarks/diagnosis.py [--healthy 20] [NAME ...]

Without names, all pathologies are trained. The healthy trainings are stock tasks with four libraries and several seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

CARTPOLE, MANAGER = "Isaac-Cartpole-Direct", "Isaac-Cartpole"
SETTINGS: Mapping[str, Any] = {"library": "rsl_rl", "num_envs": 64, "max_iterations": 80, "device": "cpu"}
CODE = """
import time
import torch
from isaaclab.managers import ManagerTermBase, RewardTermCfg, TerminationTermCfg
from isaaclab.utils import configclass
import isaaclab.envs.mdp as mdp
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

KEPT = []

def first(env):
    return 50.0 * torch.ones(env.num_envs, device=env.device)

def second(env):
    return 0.1 * torch.ones(env.num_envs, device=env.device)

def chance(env):
    return torch.rand(env.num_envs, device=env.device)

def slow(env):
    if env.common_step_counter > 800:
        time.sleep(0.02)
    return torch.zeros(env.num_envs, device=env.device)

def leak(env):
    KEPT.append(torch.rand(200_000))
    return torch.zeros(env.num_envs, device=env.device)

def growing(env):
    return -torch.ones(env.num_envs, device=env.device) * 1.006 ** max(0, env.common_step_counter - 600)

def at_once(env):
    return env.episode_length_buf >= (1 if env.common_step_counter > 600 else 1000)

def poor(env):
    later = env.common_step_counter > 2400
    return -5.0 * (mdp.joint_pos_rel(env)[:, 1].abs() < 0.3).float() if later else torch.zeros(env.num_envs)

class Parked(ManagerTermBase):
    "Success is a cart that stands 2 m from the middle, which no term of the reward asks for."

    def reset(self, env_ids):
        parked = mdp.joint_pos_rel(self._env)[env_ids, 0] > 2.0
        self._env.extras.setdefault("log", {{}})["Metrics/success_rate"] = parked.float().mean()

    def __call__(self, env):
        return torch.zeros(env.num_envs, device=env.device)

@configclass
class BadCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        {change}
"""
TERM = "self.rewards.{0} = RewardTermCfg(func={0}, weight=1.0)"
ALONE = (
    "self.rewards.alive = self.rewards.terminating = self.rewards.pole_pos = None\n        "
    "self.rewards.cart_vel = self.rewards.pole_vel = None\n        "
)
PATHOLOGIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "action std explodes": ("", {"agent": {"algorithm.entropy_coef": 1.0}}),
    "action std collapsed": (
        "",
        {"agent": {"algorithm.entropy_coef": -0.5, "algorithm.schedule": "fixed", "algorithm.learning_rate": 3e-3}},
    ),
    "learning rate at its lower bound": (
        "",
        {
            "agent": {
                "algorithm.desired_kl": 3e-4,
                "algorithm.num_learning_epochs": 16,
                "algorithm.num_mini_batches": 16,
            }
        },
    ),
    "KL spikes": (
        "",
        {
            "library": "rl_games",
            "agent": {"params.config.learning_rate": 0.05, "params.config.lr_schedule": "identity"},
        },
    ),
    "reward does not rise": (
        ALONE + "self.episode_length_s = 0.25\n        " + TERM.format("chance"),
        {"max_iterations": 200},
    ),
    "one term carries the reward": (
        TERM.format("first") + "\n        " + TERM.format("second"),
        {"max_iterations": 180},
    ),
    "throughput fell": (TERM.format("slow"), {}),
    "memory grows": (TERM.format("leak"), {"max_iterations": 600}),
    "value loss grows": (TERM.format("growing"), {}),
    "episodes end at once": ("self.terminations.at_once = TerminationTermCfg(func=at_once)", {}),
    "reward collapsed": (TERM.format("poor"), {"max_iterations": 220}),
    "reward rises without success": (
        "self.rewards.success_rate = RewardTermCfg(func=Parked, weight=0.0)",
        {"max_iterations": 180},
    ),
}


def sick(name: str) -> bool:
    """Train badly; return whether the diagnosis names it."""
    change, changed = PATHOLOGIES[name]
    settings = {**SETTINGS, **changed}
    task = rlnb.task(MANAGER)
    if change:
        source.write_module(rlnb.options.folders, "Bad", CODE.format(change=change), "-")
        task = rlnb.task("Bad")
    run = rlnb.train(task, **settings)
    with contextlib.suppress(rlnb.RunError):
        run.wait(600)
    found = [symptom.name for symptom in run.diagnose().symptoms]
    print(f"  {name}: {run.state}, {found}", flush=True)
    return name in found


def healthy(number: int) -> bool:
    """Train well; return whether the diagnosis is silent."""
    libraries = ("rsl_rl", "rl_games", "skrl", "sb3")
    task = (CARTPOLE, MANAGER)[number // len(libraries) % 2]
    settings = {**SETTINGS, "library": libraries[number % len(libraries)], "num_envs": 256, "max_iterations": 60}
    run = rlnb.train(task, **settings, seed=number).wait(600)
    found = run.diagnose()
    print(f"  healthy {task}, {run.library}, seed {number}, {found.points} points: {found.line or '-'}", flush=True)
    return not found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=20)
    parser.add_argument("names", nargs="*", default=[*PATHOLOGIES])
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    named = {name: sick(name) for name in arguments.names}
    if len(named) == len(PATHOLOGIES):
        missed = ", ".join(name for name, found in named.items() if not found)
        record(
            "planted pathologies of learning: named by the diagnosis",
            f"{sum(named.values())} of {len(named)}{f', not {missed}' if missed else ''}",
            "at least 10 of 12",
            sum(named.values()) >= 10,
        )
    if arguments.healthy:
        silent = [healthy(number) for number in range(arguments.healthy)]
        alarms = len(silent) - sum(silent)
        record(
            "healthy trainings of cartpole with four libraries: alarms of the diagnosis",
            f"{alarms} of {len(silent)}",
            "0 of 20",
            not alarms and len(silent) >= 20,
        )


if __name__ == "__main__":
    main()
