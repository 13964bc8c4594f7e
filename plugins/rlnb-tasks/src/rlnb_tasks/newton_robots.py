"""Ant and humanoid, made from the USD files inside the installed newton wheel (Apache-2.0)."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from rlnb import RlnbError
from rlnb_tasks import files
from rlnb_tasks.stage import Vector, paint, save

KNOWN_NEWTON = "1.6.1"
"""Version of newton that this module was written for."""
RETAINED = "physxRigidBody:retainAccelerations"
"""Attribute of the humanoid's links, which Newton does not read. With it, a humanoid in free fall reaches NaN under
OvPhysX in the sixth step of the task; without it, the humanoid falls with 9.8 m/s^2. The attribute does no harm if
OvPhysX does not apply external forces in every iteration of its solver, but by Isaac Lab's default it does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Robot:
    """Conversion of a file from the newton wheel into the file that the stock tasks load."""

    path: str
    """Path of the resulting file, relative to the asset root."""
    joints: frozenset[str]
    """All joints that the resulting file must have, fixed joints included, under their names in the stock configs."""
    colour: Vector
    """Linear RGB of the trunk, 0 to 1."""
    limb_colours: dict[str, Vector]
    """Linear RGB, 0 to 1, of the links whose name contains the key."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Joint names in the wheel's file, mapped to those in the stock configs."""
    density_kgm3: float | None = None
    """Density of every link; None keeps the file's density."""


ANT = Robot(
    path=files.ANT,
    joints=frozenset(
        f"{leg}_{part}" for leg in ("front_left", "front_right", "left_back", "right_back") for part in ("leg", "foot")
    ),
    colour=(0.90, 0.33, 0.05),
    limb_colours={"leg": (0.97, 0.55, 0.20), "foot": (0.45, 0.14, 0.04)},
    # With the density of 1 in ant.usda, the ant weighs 0.18 kg. The task's gears were chosen for nv_ant.xml in the same
    # wheel, where the density is 5 and the ant weighs 0.91 kg.
    density_kgm3=5.0,
)
HUMANOID = Robot(
    path=files.HUMANOID,
    joints=frozenset(
        f"{side}_{part}"
        for side in ("left", "right")
        for part in ("thigh", "shin", "foot", "upper_arm", "lower_arm", "hand")
    )
    | {"head", "lower_waist", "pelvis"},
    colour=(0.12, 0.32, 0.70),
    limb_colours={
        "thigh": (0.20, 0.24, 0.32),
        "shin": (0.20, 0.24, 0.32),
        "foot": (0.08, 0.08, 0.09),
        "head": (0.85, 0.60, 0.45),
        "lower_arm": (0.85, 0.60, 0.45),
        "hand": (0.85, 0.60, 0.45),
    },
    # The stock configs name a joint after the link that it moves.
    renamed={
        "abdomen_x": "pelvis",
        "right_knee": "right_shin",
        "left_knee": "left_shin",
        "right_elbow": "right_lower_arm",
        "left_elbow": "left_lower_arm",
    },
)


def write(folder: Path) -> None:
    """Write both robots below an asset root.

    Raises:
        RlnbError: newton is not installed, or its files differ from those that this package supports.
    """
    for robot in (ANT, HUMANOID):
        save(_robot_stage(source(robot.path), robot), folder / robot.path)


def source(path: str) -> Path:
    """Return the file in the installed newton wheel that ``path`` is made from.

    Raises:
        RlnbError: newton is not installed, or has no such file.
    """
    name = files.FROM_NEWTON[path]
    spec = importlib.util.find_spec("newton")  # an import would take seconds
    if spec is None or not spec.submodule_search_locations:
        raise RlnbError(f"{path} is made from a file of newton, which is not installed. Use pip install isaaclab")
    file = Path(spec.submodule_search_locations[0]) / "examples" / "assets" / name
    if not file.is_file():
        raise RlnbError(f"newton {_version()} has no {name}, which is needed to make {path}. {_advice()}")
    return file


def _robot_stage(file: Path, robot: Robot) -> Usd.Stage:
    """Return a new stage with only the file's default prim, changed as ``robot`` specifies."""
    original = Sdf.Layer.FindOrOpen(str(file))
    root = Sdf.Path.absoluteRootPath.AppendChild(original.defaultPrim)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    Sdf.CopySpec(original, root, layer, root)
    _rename_joints(layer, root.AppendChild("joints"), robot, file)

    stage = Usd.Stage.Open(layer)
    stage.SetDefaultPrim(stage.GetPrimAtPath(root))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    # The collision groups only filter contacts with colliders outside the robot's links. The new stage has no such
    # colliders, so the groups have no effect.
    for prim in [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.CollisionGroup)]:
        stage.RemovePrim(prim.GetPath())
    for link in stage.GetPrimAtPath(root).GetChildren():
        if not link.HasAPI(UsdPhysics.RigidBodyAPI):
            continue
        if robot.density_kgm3 is not None:
            UsdPhysics.MassAPI(link).CreateDensityAttr(robot.density_kgm3)
        link.RemoveProperty(RETAINED)
        name = link.GetName()
        colour = next((value for key, value in robot.limb_colours.items() if key in name), robot.colour)
        for shape in Usd.PrimRange(link):
            if shape.IsA(UsdGeom.Gprim):
                paint(UsdGeom.Gprim(shape), colour)
    return stage


def _rename_joints(layer: Sdf.Layer, joints: Sdf.Path, robot: Robot, file: Path) -> None:
    edit = Sdf.BatchNamespaceEdit()
    for old, new in robot.renamed.items():
        edit.Add(Sdf.NamespaceEdit.Rename(joints.AppendChild(old), new))
    spec = layer.GetPrimAtPath(joints)
    names = {robot.renamed.get(child.name, child.name) for child in spec.nameChildren} if spec else set()
    if names != robot.joints or not layer.Apply(edit):
        differences = ", ".join(sorted(names ^ robot.joints)) or ", ".join(robot.renamed)
        raise RlnbError(f"{file.name} of newton {_version()} has missing or extra joints: {differences}. {_advice()}")


def _version() -> str:
    return metadata.version("newton")


def _advice() -> str:
    return f"This version of rlnb-tasks supports newton {KNOWN_NEWTON}. Install that version, or a newer rlnb-tasks."
