"""Policies of a run, loaded and called as an evaluation does, for the conformance kit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rlnb

LOAD_S = 300.0
"""Seconds that a simulator may take to start and load the policies."""
NUM_ENVS, STEPS = 8, 128
"""Size of a recording."""
ACT = """
import copy, dataclasses, json, sys
from pathlib import Path
import numpy as np
import torch
import rlnb
from rlnb import plugins
from rlnb.tasks.agent_config import choice_of
from rlnb.worker.acting import joint
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

run, loads, path, num_envs, steps = sys.argv[1:]
manifest = rlnb.Run(Path(run)).manifest
library = plugins.library(manifest.library)
isaaclab.start(manifest.asset_root)
task = dataclasses.replace(manifest.task, num_envs=int(num_envs))
observations, arrays = None, {}


def add(name, value, to):
    if isinstance(value, dict):
        for key, part in value.items():
            add(f"{name}.{key}" if name else key, part, to)
    else:
        to.setdefault(name, []).append(value.detach().cpu().numpy().copy())


def flat(actions):
    parts = actions.values() if isinstance(actions, dict) else [actions]
    return np.concatenate([part.cpu().numpy().ravel() for part in parts])


def record(env, policy, obs):
    tape = {}
    for _ in range(int(steps)):
        add("obs", obs, tape)
        actions = policy(obs)
        add("actions", actions, tape)
        obs, *outcome, _ = env.step(actions)
        _, terminated, truncated = joint(*outcome)
        add("ended", terminated | truncated, tape)
        policy.reset(terminated | truncated)
    policy.reset(torch.ones_like(terminated))
    return {name: np.stack(values) for name, values in tape.items()}


for number, (checkpoint, seed) in enumerate(json.loads(loads)):
    opened = environment(task, library, agent=choice_of(manifest), seed=seed, device="cpu", manifest=manifest)
    with opened as (env, agent_cfg), torch.inference_mode():
        backend = plugins.load(library.backend)()
        policy = backend.load_policy(env, agent_cfg, Path(checkpoint), device="cpu", trust=False)
        own, _ = env.reset()
        observations = observations or copy.deepcopy(own)
        arrays[f"load.{number}"] = flat(policy(observations))
        if number == 0:
            policy.reset(torch.ones(int(num_envs), dtype=torch.bool))
            arrays |= record(env, policy, own)
            arrays["repeat"] = flat(policy(observations))
np.savez(path, **arrays)
"""
"""Script that loads each checkpoint in a new env with the given seed and calls the policy with the observations of the
first of these resets. The first policy also acts for a while, and is then called with these observations again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """Actions of the policies of several checkpoints, and steps of the first of them."""

    loads: Sequence[np.ndarray]
    """Actions of each policy for the same observations, all in one array."""
    repeat: np.ndarray
    """Actions of the first policy for these observations, after it has acted and was reset."""
    observations: Mapping[str, np.ndarray]
    """Observations of each step by group, or by agent, each of shape (steps, envs, ...)."""
    actions: Mapping[str, np.ndarray]
    """Actions of each step, of shape (steps, envs, action_dim), by agent; under ``""`` if there is one agent."""
    ended: np.ndarray
    """Whether an episode ended in each step, of shape (steps, envs)."""


def recorded(run: rlnb.Run, folder: Path, *loads: tuple[Path, int]) -> Recording:
    """Load policies of a run and let the first one act.

    Args:
        run: The run.
        folder: Existing folder for the recording.
        loads: A checkpoint and the seed of its env, for each policy.
    """
    path = folder / "recording.npz"
    checkpoints = json.dumps([(str(checkpoint), seed) for checkpoint, seed in loads])
    argv = [sys.executable, "-c", ACT, str(run.path), checkpoints, str(path), str(NUM_ENVS), str(STEPS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LOAD_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    with np.load(path) as file:
        arrays = dict(file)
    return Recording(
        loads=[arrays[f"load.{number}"] for number in range(len(loads))],
        repeat=arrays["repeat"],
        observations=_below("obs.", arrays),
        actions=_below("actions.", arrays) or {"": arrays["actions"]},
        ended=arrays["ended"],
    )


def _below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
