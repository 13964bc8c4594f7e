"""Boxes around the bodies of an env's robots and objects, from their geometry on the stage.

The origin of a body says nothing about its size, and may be outside of it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Extents:
    """The space that the robots of each env take up, as the corners of boxes around their bodies.

    The robots are the articulations of the scene, or its rigid objects if it has no articulation. The boxes are
    measured once, on the first env's prims; all envs are assumed to be alike.

    Args:
        env: The task's own env.
        envs: Numbers of the envs to look at; None is all of them.
    """

    def __init__(self, env: Any, envs: Sequence[int] | None = None) -> None:
        articulations, objects = [*env.scene.articulations.values()], [*env.scene.rigid_objects.values()]
        self._device = env.device
        self._rows = [*range(env.num_envs)] if envs is None else [*envs]
        self._robots = [_Bodies(env, asset) for asset in articulations or objects]
        self._objects = [_Bodies(env, asset) for asset in objects] if articulations else []

    def of_robots(self) -> torch.Tensor:
        """Return the corners of the boxes of all robots; shape (envs, corners, 3), metres in the world."""
        return self._joined(self._robots)

    def with_near_objects(self) -> torch.Tensor:
        """Return the corners of robots, and of objects no farther from them than the robots' own size.

        Shape (envs, corners, 3), metres in the world; NaN in place of an object that is farther away.
        """
        import torch

        robots, objects = self.of_robots(), self._joined(self._objects)
        if not objects.shape[1]:
            return robots
        low, high = robots.amin(dim=1, keepdim=True), robots.amax(dim=1, keepdim=True)
        reach = (high - low).norm(dim=-1, keepdim=True)
        boxes = objects.unflatten(1, (-1, 8))
        away = (boxes - boxes.clamp(low[:, None], high[:, None])).norm(dim=-1, keepdim=True)
        near = (away <= reach[:, None]).all(dim=2, keepdim=True)
        return torch.cat([robots, torch.where(near, boxes, torch.nan).flatten(1, 2)], dim=1)

    def _joined(self, assets: Sequence[_Bodies]) -> torch.Tensor:
        import torch

        corners = [bodies.corners(self._rows) for bodies in assets]
        return torch.cat(corners, dim=1) if corners else torch.zeros(len(self._rows), 0, 3, device=self._device)


class _Bodies:
    """The bodies of an asset, with a box around each in the body's own frame.

    A fixed base that is longer than all moving bodies together is left out: beside a long rail, the rest of a robot
    would hardly be visible.
    """

    def __init__(self, env: Any, asset: Any) -> None:
        import torch

        first = asset.cfg.prim_path.replace(env.scene.env_regex_ns, f"{env.scene.env_ns}/env_0")
        boxes = body_boxes(env.scene.stage, first, asset.body_names)
        base, *others = (math.dist(low, high) for low, high in boxes)
        self._bodies = slice(1 if getattr(asset, "is_fixed_base", False) and 0.0 < sum(others) < base else 0, None)
        self._data = asset.data
        self._corners = torch.tensor(
            [[*itertools.product(*zip(low, high, strict=True))] for low, high in boxes[self._bodies]],
            dtype=torch.float32,
            device=env.device,
        )

    def corners(self, rows: list[int]) -> torch.Tensor:
        """Return the current corners of all boxes in some envs, shape (envs, 8 * bodies, 3), metres in the world."""
        import torch

        positions = self._data.body_pos_w.torch[rows][:, self._bodies]
        rotations = self._data.body_quat_w.torch[rows][:, self._bodies]
        num_envs, bodies = positions.shape[:2]
        corners = self._corners.expand(num_envs, bodies, 8, 3)
        axis = rotations[:, :, None, :3].expand_as(corners)  # quaternions as x, y, z, w
        half = torch.linalg.cross(axis, corners) + rotations[:, :, None, 3:] * corners
        turned = corners + 2.0 * torch.linalg.cross(axis, half)
        return (turned + positions[:, :, None]).flatten(1, 2)


Box = tuple[tuple[float, ...], tuple[float, ...]]
"""Two opposite corners of a box, metres in the frame of its body."""


def body_boxes(stage: Any, root: str, names: Sequence[str]) -> list[Box]:
    """Return a box around each body of an asset: around its visible shapes, or around all of them if none is visible.

    A body without a shape has a box of no size, at its origin.

    Args:
        stage: The USD stage.
        root: Regular expression of the path of the asset's prim.
        names: Names of the bodies. Each is the last part of the path of a prim with the rigid-body API.
    """
    prim = _prim(stage, root)
    visible: dict[str, list[Any]] = {}
    hidden: dict[str, list[Any]] = {}
    for body, is_visible, points in _shapes(prim) if prim is not None else ():
        (visible if is_visible else hidden).setdefault(body, []).extend(points)
    return [_around(visible.get(name) or hidden.get(name) or [(0.0, 0.0, 0.0)]) for name in names]


def _prim(stage: Any, path: str) -> Any:
    """Return the first prim with a path that matches a regular expression; None if there is none."""
    from pxr import Sdf

    if Sdf.Path.IsValidPathString(path):  # a search among all prims takes longer
        return stage.GetPrimAtPath(path) or None
    return next((prim for prim in stage.TraverseAll() if re.fullmatch(path, str(prim.GetPath()))), None)


def _around(points: Sequence[Sequence[float]]) -> Box:
    axes = [*zip(*points, strict=True)]
    return tuple(map(min, axes)), tuple(map(max, axes))


def _shapes(root: Any) -> Iterator[tuple[str, bool, list[Any]]]:
    """Yield the name of the body of each shape, whether the shape is visible, and the 8 corners of the shape's box."""
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    places = UsdGeom.XformCache()
    for prim in Usd.PrimRange(root, Usd.TraverseInstanceProxies()):
        if not prim.IsA(UsdGeom.Gprim):
            continue
        body = prim
        while body.IsValid() and not body.HasAPI(UsdPhysics.RigidBodyAPI):
            body = body.GetParent()
        extent = UsdGeom.Boundable(prim).ComputeExtent(Usd.TimeCode.Default())
        if not body.IsValid() or not extent:
            continue
        frame = places.GetLocalToWorldTransform(body).RemoveScaleShear()
        to_body = places.GetLocalToWorldTransform(prim) * frame.GetInverse()
        box = Gf.Range3d(Gf.Vec3d(extent[0]), Gf.Vec3d(extent[1]))
        shape = UsdGeom.Imageable(prim)
        is_visible = shape.ComputeVisibility() != UsdGeom.Tokens.invisible
        is_visible = is_visible and shape.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)
        yield body.GetName(), is_visible, [tuple(to_body.Transform(box.GetCorner(n))) for n in range(8)]
