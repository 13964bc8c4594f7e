"""The Shadow Hand, extracted on the user's machine from a stage in the test data of the isaaclab wheel.

Isaac Lab wrote that stage for its camera task. It contains the hand with the task's poses and with schemas that only
Isaac Sim reads. This module writes only the hand, in the form that the stock tasks load. The four tendons are written
twice, since each engine reads only its own schemas: the variant ``physx`` has them as they are in the stage, and the
variant ``mujoco`` in MuJoCo's schemas.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from pxr import Sdf, Usd, UsdGeom, UsdPhysics

from rlnb import RlnbError
from rlnb_tasks import files
from rlnb_tasks.stage import paint, save

SOURCE = (
    "isaaclab/source/isaaclab_tasks/test/golden_stages/"
    "registered_tasks_Isaac-Reorient-Cube-Shadow-Camera-Direct/default_physics-default_renderer-stage.usda"
)
"""Path of the stage, below the folder in which the isaaclab package is installed."""
SOURCE_SHA256 = "4fa0e701d665e6ff0a2d20ec262b3e13d338ca281825e96974ed21b0488ebb74"
"""Hash of the stage in the release of isaaclab that this module was written for."""

IN_THE_STAGE = "/World/envs/env_0/Robot"
HAND = Sdf.Path("/right_hand")
DISABLED_WELD = HAND.AppendPath("Geometry/rh_forearm/PhysicsFixedJoint")
"""A second joint that holds the forearm. The stage disables it, but importers read it anyway."""
OF_ISAAC_SIM = ("Isaac", "PhysicsJointState")
"""Prefixes of the API schemas that only Isaac Sim reads."""
KIT_NOTES = ("hide_in_stage_window", "no_delete")
PROPERTIES_OF_ISAAC_SIM = ("isaac:", "state:")
TENDON_SCHEMA, TENDON_PROPERTY = "PhysxTendon", "physxTendon:"
"""Prefixes of PhysX's schemas for tendons, and of their properties."""
VARIANTS = {"Physics": ("mujoco", "physx"), "Colliders": ("simplified",)}
"""Variants of NVIDIA's asset that the stock configs select, with the default first. The hand written here has these."""

TENDON_RANGE_RAD = (0.0, 3.1415)
"""Control range of a tendon's motor: ``TENDON_POSITION_LIMITS`` of ``isaaclab_assets.robots.shadow_hand``."""
TENDON_FORCE_N = 1.0
"""Largest force of a tendon's motor in either direction."""


@dataclass(slots=True)
class Tendon:
    """A tendon whose motor bends the last two joints of a finger together: J0 = J1 + J2."""

    stiffness: float = 0.0
    joints: list[Sdf.Path] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Axes:
    """The schemas and attributes of PhysX for the tendons over a joint."""

    schemas: list[str]
    """Applied schemas."""
    values: Mapping[str, tuple[Sdf.ValueTypeName, Any]]
    """Type and value of each attribute, by name."""


def write(folder: Path) -> None:
    """Write the hand below an asset root.

    Raises:
        RlnbError: isaaclab is not installed, or its stage differs from the one that this package supports.
    """
    save(hand(source()), folder / files.SHADOW_HAND)


def source() -> Path:
    """Return the path of the stage that contains the hand.

    Raises:
        RlnbError: isaaclab is not installed, or its stage differs from the one that this package supports.
    """
    spec = importlib.util.find_spec("isaaclab")  # an import would take seconds
    if spec is None or not spec.submodule_search_locations:
        raise RlnbError("isaaclab, whose wheel holds the Shadow Hand, is not installed. Use pip install isaaclab")
    file = Path(spec.submodule_search_locations[0]).parent / SOURCE
    advice = "Install the version of isaaclab that rlnb doctor names, or a newer rlnb-tasks."
    version = metadata.version("isaaclab")
    if not file.is_file():
        raise RlnbError(f"isaaclab {version} has no {file.parent.name}/{file.name}, which contains the hand. {advice}")
    if hashlib.sha256(file.read_bytes()).hexdigest() != SOURCE_SHA256:
        raise RlnbError(
            f"{file.parent.name}/{file.name} of isaaclab {version} is not the file that rlnb-tasks supports. {advice}"
        )
    return file


def hand(file: Path) -> Usd.Stage:
    """Return a new stage with only the hand of a stage file."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    Sdf.CopySpec(_flat(file), Sdf.Path(IN_THE_STAGE), layer, HAND)
    stage = Usd.Stage.Open(layer)
    root = stage.GetPrimAtPath(HAND)
    stage.SetDefaultPrim(root)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for name in ("xformOp:translate", "xformOp:orient", "xformOp:scale", "xformOpOrder", "extentsHint"):
        root.RemoveProperty(name)  # the task's pose of the hand
    stage.RemovePrim(DISABLED_WELD)
    tendons, axes = _tendons(stage), _axes(stage)
    for prim in stage.Traverse():
        _strip(prim)
        if colour := _colour(prim):
            paint(UsdGeom.Gprim(prim), colour)
    for name, values in VARIANTS.items():
        variants = root.GetVariantSets().AddVariantSet(name)
        for value in values:
            variants.AddVariant(value)
        variants.SetVariantSelection(values[0])
    with _variant(root, "physx"):
        _write_axes(stage, axes)
    with _variant(root, "mujoco"):
        _write_mujoco(stage, tendons)
    return stage


@contextlib.contextmanager
def _variant(root: Usd.Prim, value: str) -> Iterator[None]:
    """Write into a variant of the physics, and select the default again at the end."""
    variants = root.GetVariantSet("Physics")
    variants.SetVariantSelection(value)
    with variants.GetVariantEditContext():
        yield
    variants.SetVariantSelection(VARIANTS["Physics"][0])


def _flat(file: Path) -> Sdf.Layer:
    """Return the stage as a single layer, in which the robot has no instanced parts."""
    layer = Sdf.Layer.OpenAsAnonymous(str(file))
    layer.Traverse("/", lambda path: _forget_kit(layer.GetPrimAtPath(path)))
    stage = Usd.Stage.Open(layer)
    while instances := list(_instances(stage.GetPrimAtPath(IN_THE_STAGE))):
        for prim in instances:
            prim.SetInstanceable(False)
    return stage.Flatten()


def _forget_kit(spec: Sdf.PrimSpec | None) -> None:
    """Clear the metadata of Isaac Sim's window on a prim, because plain USD warns about each unknown key."""
    if spec is None:
        return
    for key in KIT_NOTES:
        if spec.HasInfo(key):
            spec.ClearInfo(key)


def _instances(root: Usd.Prim) -> Iterator[Usd.Prim]:
    return (prim for prim in Usd.PrimRange(root) if prim.IsInstance())


def _tendons(stage: Usd.Stage) -> dict[str, Tendon]:
    """Return the tendons described by PhysX schemas, which have a root with a stiffness and joints with a gearing."""
    tendons: dict[str, Tendon] = {}
    for prim in stage.Traverse():
        for schema in _schemas(prim):  # plain USD does not list PhysX schemas as applied
            kind, _, name = schema.partition(":")
            if not kind.startswith("PhysxTendonAxis"):
                continue
            tendon = tendons.setdefault(name, Tendon())
            if kind == "PhysxTendonAxisRootAPI":
                tendon.stiffness = prim.GetAttribute(f"physxTendon:{name}:stiffness").Get()
            if any(prim.GetAttribute(f"physxTendon:{name}:gearing").Get() or ()):
                tendon.joints.append(prim.GetPath())
    return tendons


def _schemas(prim: Usd.Prim) -> list[str]:
    """Return the names of a prim's API schemas, including those that plain USD does not know."""
    listing = prim.GetMetadata("apiSchemas")
    return list(listing.explicitItems) if listing else []


def _axes(stage: Usd.Stage) -> dict[Sdf.Path, Axes]:
    """Return what PhysX's schemas say about the tendons over each joint."""
    axes = {}
    for prim in stage.Traverse():
        schemas = [name for name in _schemas(prim) if name.startswith(TENDON_SCHEMA)]
        if schemas:
            attributes = [each for each in prim.GetAttributes() if each.GetName().startswith(TENDON_PROPERTY)]
            values = {each.GetName(): (each.GetTypeName(), each.Get()) for each in attributes}
            axes[prim.GetPath()] = Axes(schemas=schemas, values=values)
    return axes


def _strip(prim: Usd.Prim) -> None:
    """Remove the schemas and properties that only Isaac Sim or only PhysX reads."""
    if schemas := _schemas(prim):
        others = [name for name in schemas if not name.startswith((*OF_ISAAC_SIM, TENDON_SCHEMA))]
        # An explicit list would hide the schemas of the variants.
        prim.SetMetadata("apiSchemas", Sdf.TokenListOp.Create(prependedItems=others))
    for name in prim.GetAuthoredPropertyNames():
        if name.startswith((*PROPERTIES_OF_ISAAC_SIM, TENDON_PROPERTY)):
            prim.RemoveProperty(name)


def _colour(prim: Usd.Prim) -> tuple[float, float, float] | None:
    """Return the colour of a mesh's material, because renderers without materials use the shape's own colour."""
    binding = prim.GetRelationship("material:binding") if prim.IsA(UsdGeom.Mesh) else None
    for material in binding.GetTargets() if binding else ():
        return prim.GetStage().GetAttributeAtPath(material.AppendProperty("inputs:diffuseColor")).Get()
    return None


def _write_axes(stage: Usd.Stage, axes: Mapping[Sdf.Path, Axes]) -> None:
    """Write the tendons in PhysX's schemas, as they were in the stage."""
    for path, of_joint in axes.items():
        prim = stage.OverridePrim(path)
        prim.SetMetadata("apiSchemas", Sdf.TokenListOp.Create(prependedItems=of_joint.schemas))
        for name, (kind, value) in of_joint.values.items():
            prim.CreateAttribute(name, kind, custom=False).Set(value)


def _write_mujoco(stage: Usd.Stage, tendons: Mapping[str, Tendon]) -> None:
    """Write the tendons in MuJoCo's schemas, and its equivalent of PhysX's disableGravity."""
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            prim.CreateAttribute("mjc:gravcomp", Sdf.ValueTypeNames.Double).Set(1.0)
    UsdGeom.Scope.Define(stage, HAND.AppendChild("Physics"))
    for name, tendon in sorted(tendons.items()):
        _write_tendon(stage, name, tendon)


def _write_tendon(stage: Usd.Stage, name: str, tendon: Tendon) -> None:
    """Write a tendon and its motor in MuJoCo's schemas: a fixed tendon with position control.

    The force is ``stiffness * (control - length)``: gain ``stiffness`` and bias ``0 - stiffness * length``
    (MuJoCo's XML reference, ``actuator/general``).
    """
    types = Sdf.ValueTypeNames
    prim = stage.DefinePrim(HAND.AppendPath(f"Physics/{name}"), "MjcTendon")
    prim.CreateAttribute("mjc:type", types.Token).Set("fixed")
    prim.CreateRelationship("mjc:path").SetTargets(tendon.joints)
    count = len(tendon.joints)
    prim.CreateAttribute("mjc:path:indices", types.IntArray).Set(list(range(count)))
    prim.CreateAttribute("mjc:path:coef", types.DoubleArray).Set([1.0] * count)

    motor = stage.DefinePrim(HAND.AppendPath(f"Physics/{name.replace('rh_', 'rh_A_')}"), "MjcActuator")
    motor.CreateRelationship("mjc:target").SetTargets([prim.GetPath()])
    motor.CreateAttribute("mjc:gainType", types.Token).Set("fixed")
    motor.CreateAttribute("mjc:biasType", types.Token).Set("affine")
    motor.CreateAttribute("mjc:gainPrm", types.DoubleArray).Set([tendon.stiffness] + [0.0] * 9)
    motor.CreateAttribute("mjc:biasPrm", types.DoubleArray).Set([0.0, -tendon.stiffness] + [0.0] * 8)
    for quantity, low, high in (("ctrl", *TENDON_RANGE_RAD), ("force", -TENDON_FORCE_N, TENDON_FORCE_N)):
        motor.CreateAttribute(f"mjc:{quantity}Limited", types.Token).Set("true")
        motor.CreateAttribute(f"mjc:{quantity}Range:min", types.Double).Set(low)
        motor.CreateAttribute(f"mjc:{quantity}Range:max", types.Double).Set(high)
