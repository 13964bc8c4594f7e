"""The names, axes, limits and mass properties in the cart-poles' files."""

from pathlib import Path

import pytest
from rlnb_tasks import files

HINGE, SLIDE = "PhysicsRevoluteJoint", "PhysicsPrismaticJoint"
CART_POLE = {"slider_to_cart": (SLIDE, "Y", -4.0, 4.0), "cart_to_pole": (HINGE, "X", None, None)}
DOUBLE = {**CART_POLE, "pole_to_pendulum": (HINGE, "X", None, None)}


@pytest.mark.parametrize(
    ("path", "expected"), [(files.CARTPOLE, CART_POLE), (files.DOUBLE_PENDULUM, DOUBLE)], ids=["single", "double"]
)
def test_the_cart_joints_are_what_the_stock_tasks_expect(assets: Path, path: str, expected: dict) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / path))
    joints = {}
    for prim in stage.Traverse():
        if prim.GetTypeName() in (HINGE, SLIDE):
            limits = [prim.GetAttribute(f"physics:{side}Limit") for side in ("lower", "upper")]
            low, high = (limit.Get() if limit.HasAuthoredValue() else None for limit in limits)
            joints[prim.GetName()] = (prim.GetTypeName(), prim.GetAttribute("physics:axis").Get(), low, high)
    assert joints == expected


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_every_body_has_an_explicit_mass_and_inertia(assets: Path, path: str) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(assets / path))
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert [body.GetName() for body in bodies][:3] == ["slider", "cart", "pole"]
    for body in bodies:
        mass = UsdPhysics.MassAPI(body)
        assert mass.GetMassAttr().Get() > 0
        assert mass.GetCenterOfMassAttr().HasAuthoredValue()
        assert min(mass.GetDiagonalInertiaAttr().Get()) > 0


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_mass_and_inertia_are_those_of_the_visible_box(assets: Path, path: str) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(assets / path))
    for body in (prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)):
        mass, box = UsdPhysics.MassAPI(body), body.GetChild("visual")
        x, y, z = box.GetAttribute("xformOp:scale").Get()
        m = mass.GetMassAttr().Get()
        moments = [m * (y**2 + z**2) / 12, m * (z**2 + x**2) / 12, m * (x**2 + y**2) / 12]
        assert list(mass.GetDiagonalInertiaAttr().Get()) == pytest.approx(moments, rel=1e-5)
        centre = list(box.GetAttribute("xformOp:translate").Get())
        assert list(mass.GetCenterOfMassAttr().Get()) == pytest.approx(centre, abs=1e-6)


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_the_joint_frames_of_parent_and_child_coincide_at_rest(assets: Path, path: str) -> None:
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(assets / path))
    cache = UsdGeom.XformCache()
    for joint in (UsdPhysics.Joint(prim) for prim in stage.Traverse() if prim.GetTypeName() in (HINGE, SLIDE)):
        ends = (
            (joint.GetBody0Rel(), joint.GetLocalPos0Attr()),
            (joint.GetBody1Rel(), joint.GetLocalPos1Attr()),
        )
        first, second = (
            cache.GetLocalToWorldTransform(stage.GetPrimAtPath(body.GetTargets()[0])).Transform(Gf.Vec3d(at.Get()))
            for body, at in ends
        )
        assert Gf.IsClose(first, second, 1e-6), joint.GetPath()


def test_rail_cart_and_poles_have_different_colours(assets: Path) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / files.DOUBLE_PENDULUM))
    links = ("slider", "cart", "pole", "pendulum")
    colour = "/cart_double_pendulum/{}/visual.primvars:displayColor"
    assert len({tuple(stage.GetAttributeAtPath(colour.format(link)).Get()[0]) for link in links}) == len(links)
