"""Real robots converted from URDF: Unitree's Go2 and Franka Emika's Panda, from the example-robot-data wheel.

Newton's own converter writes the USD. Before the conversion, this module merges links that are fixed to each other.
Afterwards, it adds the drives and variants that the stock configs expect, and puts the bodies where they look for them.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics

from rlnb import RlnbError
from rlnb_tasks import files
from rlnb_tasks.urdf import merged

PACKAGE = "example-robot-data"
CONVERTER = "urdf-usd-converter"
FIX = f"Use pip install {PACKAGE} {CONVERTER}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Robot:
    """The conversion of a URDF to the file that stock tasks load."""

    path: str
    """Path of the result, below the asset root."""
    urdf: str
    """Path of the URDF, below the package's folder of robots."""
    bodies: frozenset[str]
    """Links that stay separate bodies although they are fixed to other links."""
    floats: bool
    """Whether the base moves freely."""
    flat: bool = False
    """Whether every body is a child of the robot, as in NVIDIA's asset. Otherwise each is a child of its parent body,
    below ``Geometry``, as the converter writes them and NVIDIA's Panda has them."""
    boxes: frozenset[str] = frozenset()
    """Bodies that collide as the box around their mesh, since NVIDIA's variant ``primitives`` has no mesh there. Newton
    refuses contacts of cloth with a mesh."""
    drives: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Patterns of joint names, mapped to stiffness and damping (N m/rad and N m s/rad, or N/m and N s/m)."""
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Variants of NVIDIA's asset that the stock configs select, with the default first. They are all alike here."""


GO2 = Robot(
    path=files.GO2,
    urdf="go2_description/urdf/go2.urdf",
    bodies=frozenset(f"{front}{side}_foot" for front in "FR" for side in "LR"),
    floats=True,  # the task sets the gains of the motors
    flat=True,
)
PANDA = Robot(
    path=files.PANDA,
    urdf="panda_description/urdf/panda.urdf",
    bodies=frozenset({"panda_hand"}),
    floats=False,
    boxes=frozenset({"panda_hand"}),
    # The stock config uses the file's gains. These are from MuJoCo Menagerie's model (franka_emika_panda/panda.xml).
    drives={
        "panda_joint[12]": (4500.0, 450.0),
        "panda_joint[34]": (3500.0, 350.0),
        "panda_joint[567]": (2000.0, 200.0),
        "panda_finger_joint1": (350.0, 10.0),
        "panda_finger_joint2": (0.0, 0.0),  # follows joint 1 through a mimic constraint
    },
    variants={"Physics": ("mujoco", "physx"), "Colliders": ("primitives",)},
)


def write(folder: Path) -> dict[str, str]:
    """Write the robots below an asset root.

    Returns:
        The source of each file, by the file's path.

    Raises:
        RlnbError: The packages with the robots or their converter are not installed, or have no such robot.
    """
    missing = [name for name in (PACKAGE, CONVERTER) if not _installed(name)]
    if missing:
        raise RlnbError(
            f"Building the robots needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            f"not installed. {FIX}"
        )
    return {robot.path: _write(robot, folder / robot.path) for robot in (GO2, PANDA)}


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _write(robot: Robot, path: Path) -> str:
    """Write one robot; return its source."""
    distribution = importlib.metadata.distribution(PACKAGE)
    suffix = f"/robots/{robot.urdf}"
    file = next((file for file in distribution.files or () if file.as_posix().endswith(suffix)), None)
    if file is None:
        raise RlnbError(f"{PACKAGE} {distribution.version} has no {robot.urdf}. {FIX}")
    urdf = Path(str(file.locate())).resolve()
    share = urdf.parents[
        len(Path(robot.urdf).parts)
    ]  # the package's folder, to which the URDF's mesh paths are relative
    with tempfile.TemporaryDirectory() as temporary:
        merged(urdf, robot.bodies).write(Path(temporary) / "robot.urdf")
        layer = _finished(robot, _converted(Path(temporary), share))
    path.parent.mkdir(parents=True, exist_ok=True)
    layer.Export(str(path), args={"format": "usdc"})  # for meshes, a quarter of the text's size and fast to load
    return f"{PACKAGE} {distribution.version}: {robot.urdf}, converted by {CONVERTER} {_version(CONVERTER)}"


def _version(name: str) -> str:
    return importlib.metadata.version(name)


def _converted(folder: Path, share: Path) -> Sdf.Layer:
    """Convert ``robot.urdf`` in a folder to a single layer."""
    import urdf_usd_converter

    packages = [{"name": share.name, "path": str(share)}]
    converter = urdf_usd_converter.Converter(layer_structure=False, scene=False, ros_packages=packages)
    with Tf.DiagnosticTrap():  # the converter prints a line for every mesh
        asset = converter.convert(str(folder / "robot.urdf"), str(folder))
    return Sdf.Layer.OpenAsAnonymous(str(asset.path))


def _finished(robot: Robot, layer: Sdf.Layer) -> Sdf.Layer:
    stage = Usd.Stage.Open(layer)
    root = stage.GetDefaultPrim()
    if robot.flat:
        _flatten(stage, root)
    for body in [prim for prim in stage.Traverse() if prim.GetName() in robot.boxes]:
        _box(stage, body)
    if robot.floats:
        stage.RemovePrim(root.GetPath().AppendPath("Physics/root_joint"))
    else:
        _move_articulation_root(stage, root)
    for name, values in robot.variants.items():
        variants = root.GetVariantSets().AddVariantSet(name)
        for value in values:
            variants.AddVariant(value)
        variants.SetVariantSelection(values[0])
    for joint in [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]:
        _drive(robot, joint)
    return layer


def _flatten(stage: Usd.Stage, root: Usd.Prim) -> None:
    """Make every body a child of the robot, where the stock configs look for it, and keep its pose."""
    bodies = [prim for prim in Usd.PrimRange(root) if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    cache = UsdGeom.XformCache()
    poses = {body.GetName(): cache.ComputeRelativeTransform(body, root)[0] for body in bodies}
    for body in reversed(bodies):  # deepest first, because moving a body takes its descendants along
        editor = Usd.NamespaceEditor(stage)
        editor.MovePrimAtPath(body.GetPath(), root.GetPath().AppendChild(body.GetName()))
        if not editor.ApplyEdits():
            raise RlnbError(f"{body.GetPath()} cannot be moved below {root.GetPath()}: {editor.CanApplyEdits()}")
    for name, pose in poses.items():
        body = UsdGeom.Xformable(root.GetChild(name))
        body.ClearXformOpOrder()
        for operation in ("translate", "orient", "scale", "transform"):
            body.GetPrim().RemoveProperty(f"xformOp:{operation}")
        body.AddTranslateOp().Set(pose.ExtractTranslation())
        body.AddOrientOp().Set(Gf.Quatf(pose.ExtractRotationQuat()))


def _box(stage: Usd.Stage, body: Usd.Prim) -> None:
    """Replace the collision meshes of a body by the boxes around them."""
    for mesh in [prim for prim in body.GetChildren() if prim.HasAPI(UsdPhysics.MeshCollisionAPI)]:
        purposes = [UsdGeom.Tokens.default_, UsdGeom.Tokens.guide]
        bound = UsdGeom.BBoxCache(Usd.TimeCode.Default(), purposes).ComputeRelativeBound(mesh, body)
        around, purpose = bound.ComputeAlignedRange(), UsdGeom.Imageable(mesh).GetPurposeAttr().Get()
        box = UsdGeom.Cube.Define(stage, body.GetPath().AppendChild(f"{mesh.GetName()}_box"))
        box.CreateSizeAttr(1.0)
        box.CreatePurposeAttr(purpose)
        box.AddTranslateOp().Set(around.GetMidpoint())
        box.AddScaleOp().Set(Gf.Vec3f(around.GetSize()))
        UsdPhysics.CollisionAPI.Apply(box.GetPrim())
        stage.RemovePrim(mesh.GetPath())


def _move_articulation_root(stage: Usd.Stage, root: Usd.Prim) -> None:
    """Move the articulation's root from the base link to the robot.

    PhysX holds a base that is the root itself by a joint outside of the articulation. The arm then reaches NaN at once.
    """
    base = next(prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI))
    for schema in ("PhysicsArticulationRootAPI", "NewtonArticulationRootAPI"):
        base.RemoveAppliedSchema(schema)
        root.AddAppliedSchema(schema)


def _drive(robot: Robot, joint: Usd.Prim) -> None:
    """Add a drive to a joint, with the URDF's effort limit; configs override the gains."""
    linear = joint.IsA(UsdPhysics.PrismaticJoint)
    if not linear and not joint.IsA(UsdPhysics.RevoluteJoint):
        return
    gains = (gains for pattern, gains in robot.drives.items() if re.fullmatch(pattern, joint.GetName()))
    stiffness, damping = next(gains, (0.0, 0.0))
    drive = UsdPhysics.DriveAPI.Apply(joint, "linear" if linear else "angular")
    per_unit = 1.0 if linear else math.pi / 180  # USD measures angles in degrees
    drive.CreateStiffnessAttr(stiffness * per_unit)
    drive.CreateDampingAttr(damping * per_unit)
    drive.CreateMaxForceAttr(joint.GetAttribute("urdf:limit:effort").Get())
