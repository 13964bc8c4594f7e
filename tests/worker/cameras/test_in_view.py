"""Whether the bodies of an env are within a camera's picture."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlnb.worker.cameras.rig import shows_bodies, stands_still

ALONG_X = (-0.5, 0.5, -0.5, 0.5)
"""Rotation (x, y, z, w) of a camera, by the convention of ROS, that looks along the x axis of the world, z up."""


def tensor(values: Any) -> Any:
    return SimpleNamespace(torch=torch.tensor(values, dtype=torch.float32))


def env_of(*positions: tuple[float, float, float]) -> Any:
    """Return an env for each position, with a robot of one body there."""
    robot = SimpleNamespace(data=SimpleNamespace(body_pos_w=tensor([[position] for position in positions])))
    return SimpleNamespace(scene=SimpleNamespace(articulations={"robot": robot}, rigid_objects={}))


@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
@pytest.mark.parametrize(
    ("position", "shown"),
    [
        ((3.0, 0.0, 0.0), True),
        ((-3.0, 0.0, 0.0), False),
        ((3.0, 1.4, 0.0), True),
        ((3.0, 1.6, 0.0), False),
        ((3.0, 0.0, 0.7), True),
        ((3.0, 0.0, -0.8), False),
    ],
)
def test_a_body_is_shown_within_the_angles_of_the_lens(position: tuple[float, float, float], shown: bool) -> None:
    count = 2
    data = SimpleNamespace(
        pos_w=tensor([[0.0, 0.0, 0.0]] * count),
        quat_w_ros=tensor([ALONG_X] * count),
        intrinsic_matrices=tensor([[[100.0, 0.0, 50.0], [0.0, 100.0, 25.0], [0.0, 0.0, 1.0]]] * count),
        image_shape=(50, 100),
    )
    seen = shows_bodies(env_of(position, (3.0, 0.0, 0.0)), SimpleNamespace(data=data))
    assert seen is not None
    assert seen.tolist() == [shown, True]


@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_an_env_without_bodies_is_not_judged() -> None:
    bins = SimpleNamespace(articulations={}, rigid_objects={}, rigid_object_collections={"bins": None})
    assert shows_bodies(SimpleNamespace(scene=bins), SimpleNamespace(data=None)) is None, "their poses are not read"
    robot = env_of((3.0, 0.0, 0.0))
    robot.scene.deformable_objects = {"cloth": None}
    assert shows_bodies(robot, SimpleNamespace(data=None)) is None
    empty = SimpleNamespace(scene=SimpleNamespace(articulations={}, rigid_objects={}))
    assert shows_bodies(empty, SimpleNamespace(data=None)) is None


@pytest.mark.parametrize(
    ("path", "still"),
    [
        ("/World/envs/env_.*/Camera", True),
        ("/World/envs/env_[^/]+/Camera", True),
        ("/World/Camera", True),
        ("/World/envs/env_.*/Robot/hand/wrist_camera", False),
        ("/World/envs/env_[^/]+/Robot/wrist_camera", False),
    ],
)
def test_a_camera_below_another_prim_may_move(path: str, still: bool) -> None:
    assert stands_still(path) is still
