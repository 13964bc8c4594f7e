"""The pose of an added camera: at first such that the robots are whole in the picture, then following them.

All points are in metres. A picture has the half width ``x`` and the half height ``y`` at a distance of 1 along the
optical axis.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.configs.cameras import FREE, CameraPose, Point

if TYPE_CHECKING:
    import torch

FOCAL_LENGTH, APERTURE = 24.0, 20.955
"""Focal length, and width of the sensor, of an added camera; in millimetres."""
CLIP_M = (0.05, 50.0)
"""Near and far clipping distance of an added camera."""
AWAY = (0.75, -0.55, 0.35)
"""Direction from the robots to a camera that is not aimed."""
MARGIN = 0.2
"""Share of the half width and half height that stays free around robots when the camera is set up."""
EDGE = 0.04
"""The same share before the camera moves after the robots."""
_SLACK = APERTURE / FOCAL_LENGTH / 2.0 * (MARGIN - EDGE)
"""How far robots may go from their place in the picture once the camera follows, as a share of its distance."""
_MOST = 2.0
"""Largest distance of a camera that moves back, compared with its first distance: a robot may fall without end."""
LEAST_M = 2.0 * CLIP_M[0]
"""Least distance of the camera from the nearest point of a robot."""
EMPTY_M = 3.5
"""Distance from the env's origin if there is no robot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lens:
    """The half width and the half height of a picture at a distance of 1."""

    x: float
    y: float

    @classmethod
    def of(cls, size: Sequence[int]) -> Lens:
        """Return the lens of an added camera, from the width and height of its picture in pixels."""
        half = APERTURE / FOCAL_LENGTH / 2.0
        return cls(x=half, y=half * size[1] / size[0])

    def without(self, margin: float) -> Lens:
        """Return the lens of the part of the picture inside a margin."""
        return Lens(x=self.x * (1.0 - margin), y=self.y * (1.0 - margin))


def fit(points: torch.Tensor, lens: Lens) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points that cameras look at, and their distance from them, so that some points fill the picture.

    The cameras are in the direction :data:`AWAY`.

    Args:
        points: Shape (num_envs, count, 3); NaN for none. Each env has at least one point.
        lens: The part of the picture that must hold the points.

    Returns:
        Targets of shape (num_envs, 3), and least distances of shape (num_envs,).
    """
    import torch

    axes = _axes(points)
    x, y, z = (points @ axes.T).unbind(-1)

    def least(value: torch.Tensor) -> torch.Tensor:
        return torch.where(value.isfinite(), value, torch.inf).amin(dim=1)

    def middle_and_depth(side: torch.Tensor, half: float) -> tuple[torch.Tensor, torch.Tensor]:
        # A point is in the picture if |side - eye's side| <= half * (z - eye's z).
        low, high = -least(half * z - side), least(half * z + side)
        return (low + high) / 2.0, (high - low) / (2.0 * half)

    (right, depth_x), (up, depth_y) = middle_and_depth(x, lens.x), middle_and_depth(y, lens.y)
    middle = (least(z) - least(-z)) / 2.0
    depth = torch.minimum(torch.minimum(depth_x, depth_y), least(z) - LEAST_M)
    return torch.stack([right, up, middle], dim=-1) @ axes, middle - depth


def distance_for(points: torch.Tensor, targets: torch.Tensor, lens: Lens) -> torch.Tensor:
    """Return the least distance from which a camera in the direction :data:`AWAY` sees all points.

    Args:
        points: Shape (num_envs, count, 3); NaN for none.
        targets: Points in the middle of the pictures, shape (num_envs, 3).
        lens: The part of the picture that must hold the points.

    Returns:
        Shape (num_envs,); 0 for an env without points.
    """
    import torch

    x, y, z = ((points - targets[:, None]) @ _axes(points).T).unbind(-1)
    before = torch.maximum(x.abs() / lens.x, y.abs() / lens.y).clamp(min=LEAST_M)
    distances = torch.where(before.isfinite(), before - z, 0.0)
    return torch.cat([distances, torch.zeros_like(targets[:, :1])], dim=1).amax(dim=1)


def _axes(points: torch.Tensor) -> torch.Tensor:
    """Return the unit vectors right, up and forward of a camera, as rows of a tensor of shape (3, 3)."""
    import torch

    forward = -points.new_tensor(AWAY) / points.new_tensor(AWAY).norm()
    right = torch.linalg.cross(forward, points.new_tensor((0.0, 0.0, 1.0)))
    right = right / right.norm()
    return torch.stack([right, torch.linalg.cross(right, forward), forward])


class Trail:
    """Poses of the envs' cameras, which stand still while the robots are in the picture, and follow them out of it.

    Args:
        env: The env, just reset.
        size: Width and height of a picture, in pixels.
        aim: Place of the cameras. Aimed cameras follow nothing.
        envs: Numbers of the envs; None is all of them.
    """

    eyes: torch.Tensor
    """Positions of the cameras, shape (envs, 3), metres in the world."""
    targets: torch.Tensor
    """Points in the middle of the pictures, shape (envs, 3), metres in the world."""

    def __init__(
        self, env: Any, size: Sequence[int], aim: CameraPose = FREE, envs: Sequence[int] | None = None
    ) -> None:
        self._origins = env.scene.env_origins[slice(None) if envs is None else [*envs]]
        self._extents, self._lens = Extents(env, envs), Lens.of(size)
        self.aim(aim)

    def aim(self, aim: CameraPose) -> None:
        """Set the cameras up anew, from where the robots are now."""
        import torch

        self._stands_still = aim != FREE
        points, inner = self._extents.with_near_objects(), self._lens.without(MARGIN)
        self._back = -_axes(self._origins)[2]
        self.targets, distances = self._origins.clone(), torch.full_like(self._origins[:, 0], EMPTY_M)
        finite = points.isfinite().all(dim=-1).any(dim=-1)
        if finite.any():
            self.targets[finite], distances[finite] = fit(points[finite], inner)
            distances[:] = distances[finite].amax()  # robots have the same size in all pictures
        if aim.target is not None:
            self.targets = self._origins + self._origins.new_tensor(aim.target)
            needed = distance_for(points[finite], self.targets[finite], inner)
            distances[finite] = needed.maximum(distances[finite])  # robots behind the target need no distance from it
        self._offsets = self.targets - _middle(self._extents.of_robots(), self.targets)
        self._first, self._distances = distances, distances.clone()
        self.eyes = self.targets + distances[:, None] * self._back
        if aim.eye is not None:
            self.eyes = self._origins + self._origins.new_tensor(aim.eye)

    def follow(self) -> bool:
        """Move the cameras whose robots leave the picture; return whether there is one.

        A camera moves sideways with its robots and keeps its height, so that a fall or a jump is visible. It moves back
        if the robots are still not whole in the picture.
        """
        import torch

        if self._stands_still:
            return False
        points, edge = self._extents.of_robots(), self._lens.without(EDGE)
        out = distance_for(points, self.targets, edge) > self._distances
        if not out.any():
            return False
        way = _middle(points, self.targets - self._offsets) + self._offsets - self.targets
        way[:, 2] = 0.0
        far, slack = way.norm(dim=-1), _SLACK * self._distances
        jumps = out & (far > 2.0 * slack)  # as after a reset to another place
        share = torch.where(jumps, 1.0, (1.0 - slack / far.clamp(min=1e-6)).clamp(min=0.0)) * out
        self.targets = self.targets + share[:, None] * way
        before = torch.where(jumps, self._first, self._distances)
        needed = distance_for(points, self.targets, edge).minimum(_MOST * self._first)
        self._distances = torch.where(out, torch.maximum(before, needed), self._distances)
        self.eyes = self.targets + self._distances[:, None] * self._back
        return True

    def place(self) -> CameraPose:
        """Return the position of the first camera, and the point it looks at, in the frame of its env."""
        return CameraPose(
            eye=_point(self.eyes[0] - self._origins[0]), target=_point(self.targets[0] - self._origins[0])
        )


def _point(place: torch.Tensor) -> Point:
    x, y, z = place.tolist()
    return round(x, 3), round(y, 3), round(z, 3)


def _middle(points: torch.Tensor, otherwise: torch.Tensor) -> torch.Tensor:
    """Return the middle of the box around points, shape (num_envs, 3); another point where they are not finite."""
    import torch

    if not points.shape[1]:
        return otherwise
    middle = (points.amin(dim=1) + points.amax(dim=1)) / 2.0
    return torch.where(middle.isfinite(), middle, otherwise)


# -- boxes around bodies ---------------------------------------------------------------------------------------------
# The origin of a body says nothing about its size, and may be outside of it.


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
