"""Pictures of an RTX renderer, which needs several frames. The renderer is a stand-in for that of Isaac Sim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlnb.worker.cameras import rig

MakeEnv = Callable[..., Any]


def pixel(env: Any, name: str) -> list[int]:
    """Return the step and the pose that a camera shows, and its frames since then."""
    return env.scene.sensors[name].data.output["rgb"].torch[0, 0, 0].tolist()


@pytest.mark.parametrize(
    ("renderer_type", "expected"), [("isaac_rtx", True), ("ovrtx", True), ("newton_warp", False), ("default", False)]
)
def test_both_renderers_of_nvidia_need_several_frames(rtx_env: MakeEnv, renderer_type: str, expected: bool) -> None:
    assert rig.is_rtx(rtx_env(renderer_type, wrist=["rgb"]).scene.sensors["wrist"].cfg) is expected


def test_a_camera_that_was_moved_within_a_step_shows_its_new_pose(rtx_env: MakeEnv) -> None:
    env = rtx_env(observed=("own",), own=["rgb"], added=["rgb"])
    env.step("action")
    env.scene.sensors["added"].set_world_poses_from_view(None, None)
    assert pixel(env, "added")[:2] == [1, 0], "Isaac Sim has rendered this step for the observations"
    rig.render_rtx(env, [env.scene.sensors["added"]], 1)
    assert pixel(env, "added")[:2] == [1, 1]


def test_each_frame_is_rendered_and_the_last_one_is_the_picture(rtx_env: MakeEnv) -> None:
    env = rtx_env(wrist=["rgb"], front=["rgb"])
    rig.render_rtx(env, env.scene.sensors.values(), 4)
    assert env.sim.updates == 4, "one update for both cameras"
    assert pixel(env, "wrist") == pixel(env, "front") == [0, 0, 3]


def test_other_renderers_are_left_alone(rtx_env: MakeEnv) -> None:
    env = rtx_env("newton_warp", wrist=["rgb"])
    rig.render_rtx(env, env.scene.sensors.values(), 4)
    assert env.sim.generation == 0
    assert rig.unread_pictures(env.scene.sensors.values()) == []
    assert env.scene.sensors["wrist"].frame.torch.tolist() == [0, 0], "nothing is rendered before it is read"


def test_cameras_of_the_observations_have_been_read(rtx_env: MakeEnv) -> None:
    env = rtx_env(observed=("own",), own=["rgb"], idle=["rgb"])
    env.step("action")
    assert rig.unread_pictures(env.scene.sensors.values()) == [env.scene.sensors["idle"]]
    assert rig.unread_pictures(env.scene.sensors.values()) == []
