"""The cart-pole and the cart with a double pendulum, written from primitives.

Sizes, masses, joint frames and names are those that Isaac Lab's stock tasks expect: a 1 kg cart on an 8 m rail along y,
and a 1 kg pole hinged about x at the cart's +x face. The shapes have no colliders, because the bodies never
touch anything. Each body has an explicit mass, centre of mass and inertia. Without colliders, the default centre of
mass is the body's origin. For a pole, the origin is the hinge, and gravity would not move the pole.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pxr import Gf, Usd, UsdGeom, UsdPhysics

from rlnb_tasks import files
from rlnb_tasks.stage import Vector, new_stage, paint, save

RAIL_HALF_LENGTH_M = 4.0
POLE_SIZE_M: Vector = (0.04, 0.06, 1.0)
POLE_COM_M: Vector = (0.0, 0.0, 0.47)
PIN_COLOUR: Vector = (0.12, 0.12, 0.14)


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One rigid body: a homogeneous box."""

    name: str
    """Name of the body."""
    size_m: Vector
    """Edge lengths along x, y, z."""
    mass_kg: float
    """Mass."""
    colour: Vector
    """Linear RGB, 0 to 1."""
    com_m: Vector = (0.0, 0.0, 0.0)
    """Centre of the box, and so the centre of mass, in the body's frame."""
    position_m: Vector = (0.0, 0.0, 0.0)
    """Position of the body's frame in the robot's frame with all joints at zero."""

    @property
    def inertia_kgm2(self) -> Vector:
        """Principal moments of inertia of a homogeneous box: m / 12 times the sum of the other two edges' squares."""
        x, y, z = (edge * edge for edge in self.size_m)
        return (self.mass_kg / 12 * (y + z), self.mass_kg / 12 * (x + z), self.mass_kg / 12 * (x + y))


@dataclass(frozen=True, kw_only=True, slots=True)
class Joint:
    """One joint with one degree of freedom, at the child's origin."""

    name: str
    """Name of the joint."""
    kind: Literal["prismatic", "revolute"]
    """Slide or hinge."""
    parent: Link
    """Body that carries the joint."""
    child: Link
    """Body that the joint moves."""
    axis: Literal["X", "Y", "Z"]
    """Axis of the slide or hinge."""
    limits_m: tuple[float, float] | None = None
    """Range of a slide; None means unlimited."""


SLIDER = Link(name="slider", size_m=(0.03, 2 * RAIL_HALF_LENGTH_M, 0.03), mass_kg=1.0, colour=(0.30, 0.32, 0.35))
CART = Link(name="cart", size_m=(0.2, 0.25, 0.2), mass_kg=1.0, colour=(0.06, 0.28, 0.80))
POLE = Link(
    name="pole",
    size_m=POLE_SIZE_M,
    mass_kg=1.0,
    colour=(0.95, 0.45, 0.05),
    com_m=POLE_COM_M,
    position_m=(0.12, 0.0, 0.0),
)
# The second link is offset along x so that it is not inside the first. The motion is in the y-z plane, so the offset
# has no effect on it.
PENDULUM = Link(
    name="pendulum",
    size_m=POLE_SIZE_M,
    mass_kg=1.0,
    colour=(0.10, 0.60, 0.25),
    com_m=POLE_COM_M,
    position_m=(0.16, 0.0, 0.94),
)

SLIDER_TO_CART = Joint(
    name="slider_to_cart",
    kind="prismatic",
    parent=SLIDER,
    child=CART,
    axis="Y",
    limits_m=(-RAIL_HALF_LENGTH_M, RAIL_HALF_LENGTH_M),
)
CART_TO_POLE = Joint(name="cart_to_pole", kind="revolute", parent=CART, child=POLE, axis="X")
POLE_TO_PENDULUM = Joint(name="pole_to_pendulum", kind="revolute", parent=POLE, child=PENDULUM, axis="X")


def write(folder: Path) -> None:
    """Write both robots below an asset root."""
    joints = (SLIDER_TO_CART, CART_TO_POLE)
    save(robot("cartpole", joints), folder / files.CARTPOLE)
    save(robot("cart_double_pendulum", (*joints, POLE_TO_PENDULUM)), folder / files.DOUBLE_PENDULUM)


def robot(name: str, joints: tuple[Joint, ...]) -> Usd.Stage:
    """Return a stage with one robot, a chain of links whose first link is fixed to the world."""
    stage = new_stage(name)
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetDefaultPrim())
    base = joints[0].parent
    for link in (base, *(joint.child for joint in joints)):
        _write_link(stage, f"/{name}/{link.name}", link)
    anchor = UsdPhysics.FixedJoint.Define(stage, f"/{name}/root_joint")
    anchor.CreateBody1Rel().SetTargets([f"/{name}/{base.name}"])
    for joint in joints:
        _write_joint(stage, name, joint)
        if joint.kind == "revolute":
            _write_pin(stage, f"/{name}/{joint.child.name}/pin", joint)
    return stage


def _write_link(stage: Usd.Stage, path: str, link: Link) -> None:
    body = UsdGeom.Xform.Define(stage, path)
    body.AddTranslateOp().Set(Gf.Vec3d(*link.position_m))
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    mass = UsdPhysics.MassAPI.Apply(body.GetPrim())
    mass.CreateMassAttr(link.mass_kg)
    mass.CreateCenterOfMassAttr(Gf.Vec3f(*link.com_m))
    mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*link.inertia_kgm2))
    mass.CreatePrincipalAxesAttr(Gf.Quatf(1.0))
    box = UsdGeom.Cube.Define(stage, f"{path}/visual")
    box.CreateSizeAttr(1.0)
    box.AddTranslateOp().Set(Gf.Vec3d(*link.com_m))
    box.AddScaleOp().Set(Gf.Vec3f(*link.size_m))
    paint(box, link.colour)


def _write_joint(stage: Usd.Stage, root: str, joint: Joint) -> None:
    slide = joint.kind == "prismatic"
    schema = UsdPhysics.PrismaticJoint if slide else UsdPhysics.RevoluteJoint
    prim = schema.Define(stage, f"/{root}/{joint.name}")
    prim.CreateBody0Rel().SetTargets([f"/{root}/{joint.parent.name}"])
    prim.CreateBody1Rel().SetTargets([f"/{root}/{joint.child.name}"])
    prim.CreateAxisAttr(joint.axis)
    prim.CreateLocalPos0Attr(Gf.Vec3f(*(Gf.Vec3d(*joint.child.position_m) - Gf.Vec3d(*joint.parent.position_m))))
    prim.CreateLocalPos1Attr(Gf.Vec3f(0.0))
    prim.CreateLocalRot0Attr(Gf.Quatf(1.0))
    prim.CreateLocalRot1Attr(Gf.Quatf(1.0))
    if joint.limits_m is not None:
        prim.CreateLowerLimitAttr(joint.limits_m[0])
        prim.CreateUpperLimitAttr(joint.limits_m[1])
    # Isaac Lab's actuators set damping and effort limits on an existing drive, so write one without gains.
    drive = UsdPhysics.DriveAPI.Apply(prim.GetPrim(), "linear" if slide else "angular")
    drive.CreateTypeAttr("force")
    drive.CreateStiffnessAttr(0.0)
    drive.CreateDampingAttr(0.0)


def _write_pin(stage: Usd.Stage, path: str, joint: Joint) -> None:
    """Draw the hinge, so that images show its position."""
    pin = UsdGeom.Cylinder.Define(stage, path)
    pin.CreateAxisAttr(joint.axis)
    pin.CreateRadiusAttr(0.025)
    pin.CreateHeightAttr(0.06)
    paint(pin, PIN_COLOUR)
