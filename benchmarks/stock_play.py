"""Compares ``run.evaluate`` with Isaac Lab's own ``isaaclab play`` of the same checkpoint: env config and returns.

    python benchmarks/stock_play.py
    python benchmarks/stock_play.py --libraries rsl_rl --seeds 1000

The task is a cart-pole with observation noise, pushes, and a ``play_mode()`` that ends both and shortens episodes. Its
env writes each config that it gets and the returns of whole episodes, so both sides are measured by the same code.

Stock play has no end, so the env interrupts it after the episodes, as Ctrl+C does. Stock resets the env before it
makes the networks, skrl's wrapper resets with a seed of its own, and RL-Games draws actions that it then does not take.
The env therefore begins each reset with the seed of the command line, and its steps have random numbers of their own.
It resets twice each time, because the first reset of a new env leaves the joints without the velocities that its events
have written, and stock plays from the first reset, rlnb from a later one.
Checkpoints of Stable-Baselines3 are zip files with pickles for stock, and tensors for rlnb; the benchmark converts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from against_isaaclab import ON_CPU, asset_root
from results import record

import rlnb
from rlnb.spec import EnvMode

TASK, NUM_ENVS, EPISODES, ITERATIONS = "Bench-Noisy-Cartpole", 8, 3, 10
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
OWN_PATHS = {"log_dir"}
"""Values of the config that name folders of each side."""

MODULE = """
import json
import os
import random
from pathlib import Path

import gymnasium
import isaaclab_tasks
import numpy as np
import torch
from isaaclab.envs import ManagerBasedRLEnv, mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
from isaaclab.utils import configclass
from isaaclab.utils.noise import GaussianNoiseCfg
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

OUT, SEED, EPISODES = (os.environ.get(f"STOCK_PLAY_{name}") for name in ("OUT", "SEED", "EPISODES"))


def leaves(value, path=""):
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else str(name))
    else:
        yield path, repr(value)


def random_state():
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def set_random_state(state):
    random.setstate(state[0])
    np.random.set_state(state[1])
    torch.set_rng_state(state[2])


class MeasuredEnv(ManagerBasedRLEnv):
    def __init__(self, cfg, **kwargs):
        if OUT:
            Path(OUT, f"config-{cfg.scene.num_envs}.json").write_text(json.dumps(dict(leaves(cfg.to_dict()))))
        super().__init__(cfg, **kwargs)
        self.state, self.returns = random_state(), []
        self.total = torch.zeros(self.num_envs, device=self.device)
        self.ended = torch.zeros(self.num_envs, dtype=torch.long)

    def reset(self, seed=None, **kwargs):
        for _ in range(2):
            result = super().reset(seed=int(SEED) if SEED else seed, **kwargs)
        self.state = random_state()
        return result

    def step(self, action):
        others = random_state()
        set_random_state(self.state)
        result = super().step(action)
        self.state = random_state()
        set_random_state(others)
        if SEED:
            self.total += result[1]
            for env in (result[2] | result[3]).nonzero().flatten().tolist():
                if self.ended[env] < int(EPISODES):
                    self.returns.append(self.total[env].item())
                self.total[env] = 0.0
                self.ended[env] += 1
            if (self.ended >= int(EPISODES)).all():
                Path(OUT, "returns.json").write_text(json.dumps(self.returns))
                raise KeyboardInterrupt
        return result


@configclass
class NoisyCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.observations.policy.enable_corruption = True
        self.observations.policy.joint_pos_rel.noise = GaussianNoiseCfg(std=0.1)
        self.observations.policy.joint_vel_rel.noise = GaussianNoiseCfg(std=0.5)
        self.events.push = EventTermCfg(
            func=mdp.reset_joints_by_offset,
            mode="interval",
            interval_range_s=(0.5, 1.0),
            params={
                "asset_cfg": SceneEntityCfg("robot", joint_names=["slider_to_cart"]),
                "position_range": (-0.2, 0.2),
                "velocity_range": (-2.0, 2.0),
            },
        )

    def play_mode(self):
        super().play_mode()
        self.episode_length_s = 2.0
        self.events.push = None


kwargs = dict(gymnasium.spec("Isaac-Cartpole").kwargs)
gymnasium.register(
    id="@TASK@",
    entry_point=MeasuredEnv,
    disable_env_checker=True,
    kwargs={**kwargs, "env_cfg_entry_point": NoisyCfg},
)
"""
TO_ZIP = """
import sys
import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
checkpoint, path = sys.argv[1:]


class Spaces(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))


networks = {"activation_fn": torch.nn.ELU, "net_arch": [32, 32], "squash_output": False}
agent = PPO("MlpPolicy", Spaces(), policy_kwargs=networks, device="cpu")
agent.policy.load_state_dict(torch.load(checkpoint, weights_only=True)["policy"])
agent.save(path)
"""
"""Script that writes a checkpoint of rlnb for SB3 as SB3's own zip file, with the networks of Isaac Lab's cart-pole."""


@dataclass(frozen=True)
class Side:
    """What one side has measured."""

    config: dict[str, str]
    returns: list[float]


def install(folder: Path) -> None:
    """Write a package with an entry point of Isaac Lab's tasks, and let all processes find it."""
    facts = folder / "stock_play_task-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "stock_play_task.py").write_text(MODULE.replace("@TASK@", TASK))
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: stock-play-task\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[isaaclab.tasks]\nstock_play_task = stock_play_task\n")
    os.environ["PYTHONPATH"] = str(folder)


def checkpoint_of(run: rlnb.Run, folder: Path) -> Path:
    """Return the last checkpoint of a run in the form that stock play loads."""
    checkpoint = run.checkpoints[-1]
    if run.library != "sb3":
        return Path(checkpoint)
    path = folder / "model.zip"
    subprocess.run([sys.executable, "-c", TO_ZIP, str(checkpoint), str(path)], check=True, capture_output=True)
    return path


def stock(library: str, checkpoint: Path, mode: EnvMode, seed: int, folder: Path) -> Side:
    """Let Isaac Lab's own command play a checkpoint until its env has seen the episodes."""
    folder.mkdir()
    own = {"STOCK_PLAY_OUT": str(folder), "STOCK_PLAY_SEED": str(seed), "STOCK_PLAY_EPISODES": str(EPISODES)}
    command = [sys.executable, "-m", "isaaclab", "play", "--rl_library", library, "--task", TASK, "--seed", str(seed)]
    command += ["--device", "cpu", "--num_envs", str(NUM_ENVS), "--checkpoint", str(checkpoint)]
    command += ["--train_env_cfg"] if mode == "train" else []
    with open(folder / "stock.log", "wb") as log:
        done = subprocess.run(
            [*command, *ON_CPU.get(library, ["agent.device=cpu"])],
            cwd=folder,
            env={**os.environ, **own},
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=600,
        )
    written = folder / "returns.json"
    assert written.exists(), f"{done.returncode}: {(folder / 'stock.log').read_text()[-3000:]}"
    return Side(json.loads((folder / f"config-{NUM_ENVS}.json").read_text()), json.loads(written.read_text()))


def ours(run: rlnb.Run, mode: EnvMode, seed: int, folder: Path) -> Side:
    """Evaluate a checkpoint through rlnb; the config is what its env got."""
    evaluation = run.evaluate(NUM_ENVS * EPISODES, num_envs=NUM_ENVS, seed=seed, mode=mode)
    assert evaluation.mode == mode
    return Side(json.loads((folder / f"config-{NUM_ENVS}.json").read_text()), list(evaluation.returns))


def compare(library: str, seeds: list[int], base: Path) -> None:
    """Compare both sides for one library and record the row."""
    run = rlnb.train(TASK, library=library, num_envs=64, max_iterations=ITERATIONS, device="cpu", seed=3).wait()
    (base / library).mkdir()
    checkpoint = checkpoint_of(run, base / library)
    differences: dict[str, Any] = {}
    equal = total = values = 0
    for mode in ("play", "train"):
        for seed in seeds:
            theirs = stock(library, checkpoint, mode, seed, base / library / f"{mode}-{seed}")
            mine = ours(run, mode, seed, base)
            paths = {*theirs.config, *mine.config} - OWN_PATHS
            values += len(paths)
            differences |= {
                f"{mode}: {path}": (theirs.config.get(path), mine.config.get(path))
                for path in paths
                if theirs.config.get(path) != mine.config.get(path)
            }
            total += len(theirs.returns)
            equal += sum(a == b for a, b in zip(theirs.returns, mine.returns, strict=True))
            print(library, mode, seed, theirs.returns[:3], mine.returns[:3], differences, flush=True)
    record(
        f"{library}: run.evaluate beside isaaclab play, modes play and train, {len(seeds)} seeds",
        f"{values - len(differences)} of {values} config values equal; {equal} of {total} returns bit-equal",
        "all, except log_dir",
        not differences and equal == total > 0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 7])
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    install(base / "package")
    os.environ["STOCK_PLAY_OUT"] = str(base)  # for the simulator of rlnb, which is started with it
    rlnb.options.root = base / "rlnb"
    for library in arguments.libraries:
        compare(library, arguments.seeds, base)


if __name__ == "__main__":
    main()
