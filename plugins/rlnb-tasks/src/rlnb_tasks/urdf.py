"""Prepares URDFs for conversion by merging links that never move relative to each other into one body.

Origins, inertials and joints follow ROS's specification of the format (wiki.ros.org/urdf/XML): a pose is ``xyz`` in
metres and ``rpy``, rotations in radians about the parent's fixed x, y and z axes in that order.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

Pose = np.ndarray
"""Transform from the frame of an element to the frame of its parent. Shape (4, 4), metres."""
_TENSOR = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))


def merged(file: Path, keep: Collection[str]) -> ET.ElementTree[ET.Element]:
    """Return a URDF in which links that are fixed to another link are merged into it.

    The mass, centre of mass and inertia of a body are those of its links combined.

    Args:
        file: The URDF.
        keep: Names of links that stay separate bodies even if they are fixed.
    """
    tree = ET.parse(file)
    robot = tree.getroot()
    while (joint := next((joint for joint in robot.iter("joint") if _melts(joint, keep)), None)) is not None:
        links = {link.get("name"): link for link in robot.findall("link")}
        parent, child = (links[_child(joint, end).get("link")] for end in ("parent", "child"))
        pose = _pose(joint)
        for other in robot.findall("joint"):
            if _child(other, "parent").get("link") == child.get("name"):
                _child(other, "parent").set("link", str(parent.get("name")))
                _set_pose(other, pose @ _pose(other))
        _set_inertial(parent, _together(_inertial(parent), _inertial(child, pose)))
        for shape in (*child.findall("visual"), *child.findall("collision")):
            _set_pose(shape, pose @ _pose(shape))
            parent.append(shape)
        robot.remove(joint)
        robot.remove(child)
    return tree


def _melts(joint: ET.Element, keep: Collection[str]) -> bool:
    return joint.get("type") == "fixed" and _child(joint, "child").get("link") not in keep


def _child(element: ET.Element, name: str) -> ET.Element:
    child = element.find(name)
    if child is None:
        raise ValueError(f"{element.tag} {element.get('name')!r} has no {name}")
    return child


def _numbers(text: str | None) -> list[float]:
    return [float(word) for word in (text or "0 0 0").split()]


def _pose(element: ET.Element) -> Pose:
    pose, origin = np.eye(4), element.find("origin")
    if origin is not None:
        pose[:3, 3] = _numbers(origin.get("xyz"))
        pose[:3, :3] = Rotation.from_euler("xyz", _numbers(origin.get("rpy"))).as_matrix()
    return pose


def _set_pose(element: ET.Element, pose: Pose) -> None:
    origin = element.find("origin")
    if origin is None:
        origin = ET.SubElement(element, "origin")
    origin.set("xyz", _text(pose[:3, 3]))
    origin.set("rpy", _text(Rotation.from_matrix(pose[:3, :3]).as_euler("xyz")))


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


Inertial = tuple[float, np.ndarray, np.ndarray]
"""Mass (kg), centre of mass (shape (3,), metres) and inertia about it (shape (3, 3), kg m^2), in the body's axes."""


def _inertial(link: ET.Element, pose: Pose | None = None) -> Inertial:
    """Return the inertial of a link in the frame of a body, given the link's pose in that frame."""
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    frame = (np.eye(4) if pose is None else pose) @ _pose(inertial)
    tensor = _child(inertial, "inertia")
    matrix = np.array([[float(tensor.get(key, "0")) for key in row] for row in _TENSOR])
    turn = frame[:3, :3]
    return float(_child(inertial, "mass").get("value", "0")), frame[:3, 3], turn @ matrix @ turn.T


def _together(first: Inertial, second: Inertial) -> Inertial:
    mass = first[0] + second[0]
    if mass == 0.0:
        return first
    centre = (first[0] * first[1] + second[0] * second[1]) / mass
    inertia = np.zeros((3, 3))
    for part_mass, part_centre, part_inertia in (first, second):
        away = part_centre - centre  # parallel axis theorem
        inertia += part_inertia + part_mass * (away @ away * np.eye(3) - np.outer(away, away))
    return mass, centre, inertia


def _set_inertial(link: ET.Element, inertial: Inertial) -> None:
    mass, centre, inertia = inertial
    if mass == 0.0:
        return
    old = link.find("inertial")
    if old is not None:
        link.remove(old)
    new = ET.SubElement(link, "inertial")
    ET.SubElement(new, "origin", xyz=_text(centre), rpy="0 0 0")
    ET.SubElement(new, "mass", value=repr(mass))
    ET.SubElement(new, "inertia", {_TENSOR[i][j]: repr(float(inertia[i, j])) for i in range(3) for j in range(i, 3)})
