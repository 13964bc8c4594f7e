"""Whether a camera that stands still shows the robots and objects of its env."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_ON_A_LINK = re.compile(r"/env_[^/]+/[^/]+/.+")
"""Prim path of a camera below another prim of its env, with which it may move. Its newest pose may be unknown."""


def stands_still(prim_path: str) -> bool:
    """Return whether a camera belongs to no body that could move it, from its prim path."""
    return _ON_A_LINK.search(prim_path.replace("[^/]+", "*")) is None


def shows_bodies(env: Any, sensor: Any) -> torch.Tensor | None:
    """Return whether the origin of any body is within a camera's picture. Shape (num_envs,), bool.

    A body may still be hidden by another one. The projection is that of a pinhole camera, with the optical axis along
    z, x to the right and y down (the convention of ROS, which Isaac Lab names so).

    Args:
        env: The task's own env.
        sensor: Isaac Lab's camera.

    Returns:
        None if the env has no bodies, or has objects of other kinds, whose positions are not looked at.
    """
    import torch
    from isaaclab.utils.math import quat_apply_inverse

    others = ("rigid_object_collections", "deformable_objects", "cable_objects")
    if any(getattr(env.scene, name, None) for name in others):
        return None
    assets = itertools.chain(env.scene.articulations.values(), env.scene.rigid_objects.values())
    positions = [asset.data.body_pos_w.torch for asset in assets]
    if not positions:
        return None
    bodies = torch.cat(positions, dim=1)
    data = sensor.data
    count = bodies.shape[1]
    towards = bodies - data.pos_w.torch[:, None]
    rotation = data.quat_w_ros.torch[:, None].expand(-1, count, -1)
    x, y, z = quat_apply_inverse(rotation.reshape(-1, 4), towards.reshape(-1, 3)).reshape(-1, count, 3).unbind(-1)
    matrix = data.intrinsic_matrices.torch[:, None]
    height, width = data.image_shape
    column, row = matrix[..., 0, 0] * x / z + matrix[..., 0, 2], matrix[..., 1, 1] * y / z + matrix[..., 1, 2]
    inside = (z > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    return inside.any(dim=1)
