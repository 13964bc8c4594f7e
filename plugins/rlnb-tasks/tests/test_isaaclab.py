"""Unmodified stock Isaac Lab tasks with only the packs' files, in one subprocess because isaaclab imports slowly."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

NUM_ENVS = 2
STEPS = 30
TASKS = {
    "Isaac-Ant": 8,
    "Isaac-Ant-Direct": 8,
    "Isaac-Humanoid": 21,
    "Isaac-Humanoid-Direct": 21,
    "Isaac-Cartpole": 2,
    "Isaac-Cartpole-Camera": 2,
    "Isaac-Cartpole-Direct": 2,
    "Isaac-Cartpole-Camera-Direct": 2,
    "Isaac-Pendulum-MARL-Direct": 3,
}
ON_PHYSX = {
    "Isaac-Ant-Direct": 8,
    "Isaac-Humanoid-Direct": 21,
    "Isaac-Pendulum-MARL-Direct": 3,
    "Isaac-Reorient-Cube-Shadow-Direct": 24,
}
"""One task of each robot but the cart-pole, whose tasks tests/worker/test_physx.py trains."""

SCRIPT = """
import json, sys
import gymnasium as gym
import isaaclab_tasks
import torch
from isaaclab.app import launch_simulation
from isaaclab_tasks.utils import resolve_task_config

num_envs, steps, physics = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if physics == "ovphysx":
    from rlnb.worker.isaac.ovphysx import provide_pinned_memory

    provide_pinned_memory()
for task in sys.argv[4:]:
    selectors = ["renderer=newton_renderer"] if "Camera" in task else []
    cfg, _ = resolve_task_config(task, None, overrides=[*selectors, f"physics={physics}"])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = num_envs, "cpu", 1
    with launch_simulation(cfg, {"device": "cpu"}):
        env = gym.make(task, cfg=cfg)
        env.reset()
        unwrapped = env.unwrapped
        robot = next(iter(unwrapped.scene.articulations.values()))
        start = robot.data.joint_pos.torch.clone()
        moved = 0.0
        for _ in range(steps):
            if hasattr(unwrapped, "possible_agents"):
                spaces = unwrapped.action_spaces
                actions = {agent: torch.rand(num_envs, spaces[agent].shape[-1]) for agent in spaces}
            else:
                actions = 2 * torch.rand(env.action_space.shape) - 1
            env.step(actions)
            moved = max(moved, (robot.data.joint_pos.torch - start).abs().max().item())
        state = torch.cat([robot.data.joint_pos.torch, robot.data.joint_vel.torch, robot.data.root_pos_w.torch], dim=1)
        found = {"task": task, "joints": robot.joint_names, "finite": state.isfinite().all().item(), "moved": moved}
        found["mass"] = robot.data.body_mass.torch[0].sum().item()
        found["tendons"] = robot.num_fixed_tendons
        if "Camera" in task:
            image = unwrapped.scene.sensors["tiled_camera"].data.output["rgb"].torch[0, ..., :3]
            found["colours"] = len(image.reshape(-1, 3).unique(dim=0))
        print("FOUND", json.dumps(found), flush=True)
        env.close()
"""


@pytest.fixture(scope="module")
def stock(assets: Path) -> dict[str, dict]:
    """Return the report of each stock task after some random steps with Newton."""
    return reports(assets, "newton_mjwarp", TASKS)


@pytest.fixture(scope="module")
def on_physx(assets: Path) -> dict[str, dict]:
    """Return the report of each stock task after some random steps with OvPhysX."""
    return reports(assets, "ovphysx", ON_PHYSX)


def reports(assets: Path, physics: str, tasks: Iterable[str]) -> dict[str, dict]:
    """Step tasks in one process; return the report of each."""
    for name in ("isaaclab", *(["ovphysx"] if physics == "ovphysx" else [])):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed here")
    command = [sys.executable, "-c", SCRIPT, str(NUM_ENVS), str(STEPS), physics, *tasks]
    environment = {**os.environ, "ISAACSIM_ASSET_ROOT": str(assets)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    found = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert done.returncode == 0, f"after {[f['task'] for f in found]}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return {result["task"]: result for result in found}


@pytest.mark.isaaclab
@pytest.mark.parametrize("task", TASKS)
def test_a_stock_task_steps_with_a_finite_state(stock: dict[str, dict], task: str) -> None:
    assert len(stock[task]["joints"]) == TASKS[task]
    assert stock[task]["finite"]
    assert stock[task]["moved"] > 1e-3


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.parametrize("task", ON_PHYSX)
def test_a_stock_task_steps_with_a_finite_state_under_physx(on_physx: dict[str, dict], task: str) -> None:
    assert len(on_physx[task]["joints"]) == ON_PHYSX[task]
    assert on_physx[task]["finite"]
    assert on_physx[task]["moved"] > 1e-3
    assert on_physx[task]["tendons"] == (4 if "Shadow" in task else 0)


@pytest.mark.isaaclab
def test_the_ant_has_the_mass_of_the_mujoco_model(stock: dict[str, dict]) -> None:
    assert stock["Isaac-Ant-Direct"]["mass"] == pytest.approx(0.911, rel=0.01)


@pytest.mark.isaaclab
def test_the_camera_sees_more_than_one_colour(stock: dict[str, dict]) -> None:
    assert stock["Isaac-Cartpole-Camera-Direct"]["colours"] > 2
