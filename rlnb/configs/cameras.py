"""The outputs of cameras, and the place of a camera that rlnb adds to a task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlnb.errors import CheckError, Problem

Kind = Literal["color", "depth", "label", "normal", "other"]
"""What the values of an output are: colours from 0 to 255; metres, infinite where no ray hits; ids of what is labelled;
unit vectors; or something else, which is shown as colours."""
DATA_TYPES: Mapping[str, Kind] = {
    "rgb": "color",
    "rgba": "color",
    "albedo": "color",
    "depth": "depth",
    "distance_to_image_plane": "depth",
    "distance_to_camera": "depth",
    "normals": "normal",
    "semantic_segmentation": "label",
    "instance_segmentation_fast": "label",
    "instance_id_segmentation_fast": "label",
}
"""Isaac Lab's names of camera outputs (``data_types``) that are not of the kind ``"other"``."""


def kind_of(data_type: str) -> Kind:
    """Return what the values of a camera's output are.

    Args:
        data_type: Isaac Lab's name of the output.
    """
    return DATA_TYPES.get(data_type, "label" if "segmentation" in data_type else "other")


Point = tuple[float, float, float]
"""Metres in the frame of an env: relative to the origin of the env, with z up."""
_STEEPEST = math.radians(85.0)
_NEAREST_M, _FARTHEST_M = 0.1, 1000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraPose:
    """The place of an added camera in the frame of each env. A camera without one shows and follows the robots."""

    eye: Point | None = None
    """Position of the camera, metres; None is far enough from the target to show the robots."""
    target: Point | None = None
    """Point in the middle of the picture, metres; None is the middle of the robots."""

    def __str__(self) -> str:
        """Return the place as arguments, to millimetres."""
        points = (("eye", self.eye), ("target", self.target))
        return ", ".join(f"{name}={tuple(round(at, 3) for at in point)}" for name, point in points if point is not None)


FREE = CameraPose()
"""A camera without a place."""


def aim_of(
    eye: Sequence[float] | None, target: Sequence[float] | None, cameras: Sequence[str] = ()
) -> tuple[CameraPose, list[Problem]]:
    """Return the place of an added camera, and the problems of the arguments.

    Args:
        eye: Position of the camera, metres.
        target: Point in the middle of the picture, metres.
        cameras: Names of the task's own cameras. With any, no camera is added.
    """
    points, problems = [], []
    for name, point, example in (("eye", eye, (2.0, -1.5, 1.0)), ("target", target, (0.0, 0.0, 0.5))):
        points.append(None if point is None else _point(point))
        if point is not None and points[-1] is None:
            what = f"{name}={point!r} is not a position of three numbers in metres."
            problems.append(Problem(what=what, fix=f"{name}={example}"))
        if point is not None and cameras:
            what = f"{name}= aims a camera that rlnb adds, but the task has its own: {', '.join(cameras)}."
            problems.append(Problem(what=what, fix=f"Leave {name} out."))
    if None not in points and points[0] == points[1]:
        what = f"eye and target are the same point, {points[0]}."
        problems.append(Problem(what=what, fix="Move the eye away from the target."))
    return CameraPose(eye=points[0], target=points[1]), problems


def valid_aim(of: str, eye: Sequence[float] | None, target: Sequence[float] | None) -> CameraPose:
    """Return the place of an added camera.

    Args:
        of: Subject of an error, such as ``"cameras of a run"``.
        eye: Position of the camera, metres.
        target: Point in the middle of the picture, metres.

    Raises:
        CheckError: The eye or the target is not a position.
    """
    aim, problems = aim_of(eye, target)
    if problems:
        raise CheckError(of, problems)
    return aim


def turned(place: CameraPose, right: float, down: float, zoom: float) -> CameraPose:
    """Return the place of a camera that is moved around its target.

    Args:
        place: Place of the camera, with eye and target.
        right: Angle by which the scene turns to the right, radians.
        down: Angle by which the scene turns down, radians. The camera stops before it looks straight up or down.
        zoom: Factor of the distance.
    """
    assert place.eye is not None
    assert place.target is not None
    x, y, z = (eye - target for eye, target in zip(place.eye, place.target, strict=True))
    level, azimuth = math.hypot(x, y), math.atan2(y, x) - right
    elevation = min(_STEEPEST, max(-_STEEPEST, math.atan2(z, level) + down))
    distance = min(_FARTHEST_M, max(_NEAREST_M, math.hypot(level, z) * zoom))
    flat = distance * math.cos(elevation)
    away = (flat * math.cos(azimuth), flat * math.sin(azimuth), distance * math.sin(elevation))
    left, back, up = (target + part for target, part in zip(place.target, away, strict=True))
    return CameraPose(eye=(left, back, up), target=place.target)


def _point(value: object) -> Point | None:
    """Return a value as a point; None if it is not three finite numbers."""
    try:
        x, y, z = (float(number) for number in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None
    return (x, y, z) if all(map(math.isfinite, (x, y, z))) else None
