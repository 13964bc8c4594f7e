"""Pushes and held commands in envs of real Isaac Lab on a CPU, in a process of their own."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

# All envs of the uniform command stand, and each would turn to its heading.
SCRIPT = '''
import json, math
from types import SimpleNamespace
from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.worker.isaac import isaaclab
isaaclab.start()
import torch
from rlnb.worker.isaac.controls import Controls
from rlnb.worker.isaac.env import environment

found = {}

def add_commands(env_cfg):
    from isaaclab.envs import mdp
    from isaaclab.managers import ObservationTermCfg
    Uniform, Normal = mdp.UniformVelocityCommandCfg, mdp.NormalVelocityCommandCfg
    term = dict(asset_name="robot", resampling_time_range=(10.0, 10.0), rel_standing_envs=1.0)
    ranges = Uniform.Ranges(lin_vel_x=(-1, 1), lin_vel_y=(0, 0), ang_vel_z=(-2, 2), heading=(-math.pi, math.pi))
    walk = Uniform(ranges=ranges, heading_command=True, **term)
    normal = Normal.Ranges(mean_vel=(1.0, 0.0, -0.5), std_vel=(0.1, 0.2, 0.0), zero_prob=(1.0, 1.0, 1.0))
    normal.heading = None  # Isaac Lab 3.0.0 reads it, but its config does not have it
    pose = mdp.UniformPose2dCommandCfg(asset_name="robot", simple_heading=True, resampling_time_range=(9.0, 9.0),
        ranges=mdp.UniformPose2dCommandCfg.Ranges(pos_x=(-1, 1), pos_y=(-1, 1), heading=(-1, 1)))
    env_cfg.commands = SimpleNamespace(walk=walk, drift=Normal(ranges=normal, **term), goal=pose)
    for name in ("walk", "drift"):
        seen = ObservationTermCfg(func=mdp.generated_commands, params={"command_name": name})
        setattr(env_cfg.observations.policy, name, seen)

def error(function, *args):
    try:
        function(*args)
    except RlnbError as exc:
        return str(exc)

with environment(Task(id="Isaac-Ant", num_envs=3), None, device="cpu", configure=add_commands) as (env, _):
    with torch.inference_mode():
        env.reset(seed=1)
        raw, controls = env.unwrapped, Controls(env)
        robot = raw.scene["robot"]

        def seen():
            """Step, and return what a policy sees of both commands, shape (3, 6)."""
            return env.step(torch.zeros(3, 8))[0]["policy"][:, -6:].tolist()

        found["ranges"], found["sampled"] = controls.commands, seen()
        controls.hold("walk", (0.5, -0.25, 3.0))
        controls.hold("drift", (0.125, 0.25, 0.375))
        found["held"] = seen()
        raw.command_manager.get_term("walk").time_left[:] = 0.0
        found["resampled"] = seen()
        raw.episode_length_buf[:] = raw.max_episode_length
        found["reset"] = seen()
        controls.hold("walk", None)
        found["free"] = seen()
        for name, velocity in (("along", (1.5, -0.5)), ("up", (0.0, 0.0, 2.0)), ("random", (2.0,))):
            before = robot.data.root_lin_vel_w.torch.clone()
            controls.push(velocity)
            found[name] = (robot.data.root_lin_vel_w.torch - before).tolist()
        before = robot.data.root_pos_w.torch.clone()
        controls.push((3.0, 0.0))
        seen()
        found["moved"] = (robot.data.root_pos_w.torch - before)[:, 0].tolist()
        found["errors"] = [
            error(controls.push, values) for values in ((math.nan, 0.0), (0.0, -11.0), (0.0,) * 4, ())
        ] + [
            error(controls.hold, name, values)
            for name, values in (("wlak", None), ("goal", None), ("walk", (1.0,)), ("walk", (0.0, math.inf, 0.0)))
        ]

with environment(Task(id="Isaac-Cartpole-Direct", num_envs=2), None, device="cpu") as (env, _):
    controls = Controls(env)
    found["fixed"] = [controls.commands, controls.no_push, error(controls.push, (1.0,))]
print(json.dumps(found))
'''


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    from rlnb.worker.assets.packs import build

    environment = {**os.environ, "ISAACSIM_ASSET_ROOT": str(build().folder)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def test_velocity_commands_are_found_with_their_ranges(found: dict[str, Any]) -> None:
    assert found["ranges"] == {
        "walk": {"lin_vel_x": [-1.0, 1.0], "lin_vel_y": [0.0, 0.0], "ang_vel_z": [-2.0, 2.0]},
        "drift": {
            "lin_vel_x": pytest.approx([-1.3, 1.3]),
            "lin_vel_y": pytest.approx([-0.6, 0.6]),
            "ang_vel_z": [-0.5, 0.5],
        },
    }


def test_a_policy_sees_a_held_command_also_across_samples_and_resets(found: dict[str, Any]) -> None:
    assert found["sampled"] == [[0.0] * 6] * 3, "all envs stand"
    held = [[0.5, -0.25, 3.0, 0.125, 0.25, 0.375]] * 3
    assert found["held"] == found["resampled"] == found["reset"] == held
    assert found["free"] == [[0.0, 0.0, 0.0, *held[0][3:]]] * 3, "at once, and only the one that is let go"


def test_a_push_changes_the_velocity_of_the_base(found: dict[str, Any]) -> None:
    assert found["along"] == [pytest.approx([1.5, -0.5, 0.0], abs=1e-5)] * 3
    assert found["up"] == [pytest.approx([0.0, 0.0, 2.0], abs=1e-5)] * 3
    speeds = [math.hypot(x, y) for x, y, _ in found["random"]]
    assert speeds == pytest.approx([2.0] * 3, abs=1e-4)
    assert len({round(x, 3) for x, _, _ in found["random"]}) == 3, "each env has its own direction"
    assert min(found["moved"]) > 0.02, "3 m/s for 1/60 s"


def test_impossible_values_are_refused(found: dict[str, Any]) -> None:
    limits = "which is not between -10 and 10."
    unknown = "The task has: drift, walk."
    assert found["errors"] == [
        f"The velocity of a push is nan, {limits}",
        f"The velocity of a push is -11, {limits}",
        "The velocity of a push has 4 values. Use (x, y) or (x, y, z), or one number for a speed.",
        "The velocity of a push has 0 values. Use (x, y) or (x, y, z), or one number for a speed.",
        f"No velocity command named 'wlak'. {unknown} Did you mean 'walk'?",
        f"No velocity command named 'goal'. {unknown}",
        "The command 'walk' has 1 values. Use (lin_vel_x, lin_vel_y, ang_vel_z).",
        f"The command 'walk' is inf, {limits}",
    ]


def test_a_robot_with_a_fixed_base_is_not_pushed(found: dict[str, Any]) -> None:
    reason = "The base of 'cartpole' is fixed, so a push has no effect."
    assert found["fixed"] == [{}, reason, reason]
