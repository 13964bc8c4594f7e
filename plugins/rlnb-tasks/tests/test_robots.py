"""What the files say: names, axes, limits and mass properties."""

from itertools import permutations
from pathlib import Path

import pytest
from rlnb_tasks import files

HINGE, SLIDE = "PhysicsRevoluteJoint", "PhysicsPrismaticJoint"
ANT_LEGS = ("front_left", "front_right", "left_back", "right_back")
CART_POLE = {"slider_to_cart": (SLIDE, "Y", -4.0, 4.0), "cart_to_pole": (HINGE, "X", None, None)}
DOUBLE = {**CART_POLE, "pole_to_pendulum": (HINGE, "X", None, None)}
ANT_FEET = {  # degrees, from the stock ant; the task starts the feet at 45 degrees in these directions
    "front_left_foot": (30.0, 100.0),
    "front_right_foot": (-100.0, -30.0),
    "left_back_foot": (-100.0, -30.0),
    "right_back_foot": (30.0, 100.0),
}


@pytest.mark.parametrize(
    ("path", "expected"), [(files.CARTPOLE, CART_POLE), (files.DOUBLE_PENDULUM, DOUBLE)], ids=["single", "double"]
)
def test_the_cart_joints_are_what_the_stock_tasks_expect(assets: Path, path: str, expected: dict) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / path))
    found = {}
    for prim in stage.Traverse():
        if prim.GetTypeName() in (HINGE, SLIDE):
            limits = [prim.GetAttribute(f"physics:{side}Limit") for side in ("lower", "upper")]
            low, high = (limit.Get() if limit.HasAuthoredValue() else None for limit in limits)
            found[prim.GetName()] = (prim.GetTypeName(), prim.GetAttribute("physics:axis").Get(), low, high)
    assert found == expected


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_every_cart_body_states_a_possible_mass_and_inertia(assets: Path, path: str) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(assets / path))
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert [body.GetName() for body in bodies][:3] == ["slider", "cart", "pole"]
    for body in bodies:
        mass = UsdPhysics.MassAPI(body)
        assert mass.GetMassAttr().Get() > 0
        assert mass.GetCenterOfMassAttr().HasAuthoredValue()
        assert_possible(list(mass.GetDiagonalInertiaAttr().Get()))


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_mass_and_inertia_are_those_of_the_box_one_sees(assets: Path, path: str) -> None:
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


def test_rail_cart_and_pole_have_colours_of_their_own(assets: Path) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / files.DOUBLE_PENDULUM))
    links = ("slider", "cart", "pole", "pendulum")
    colour = "/cart_double_pendulum/{}/visual.primvars:displayColor"
    assert len({tuple(stage.GetAttributeAtPath(colour.format(link)).Get()[0]) for link in links}) == len(links)


def test_the_ant_has_the_stock_joints_links_and_limits(assets: Path) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(assets / files.ANT))
    joints = {prim.GetName(): prim for prim in stage.Traverse() if prim.GetTypeName() == HINGE}
    links = {prim.GetName() for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)}
    names = {f"{leg}_{part}" for leg in ANT_LEGS for part in ("leg", "foot")}
    assert set(joints) == names
    assert links == {"torso", *names}
    for name, joint in joints.items():
        limits = tuple(joint.GetAttribute(f"physics:{side}Limit").Get() for side in ("lower", "upper"))
        assert limits == ANT_FEET.get(name, (-40.0, 40.0)), name


ROBOTS = [(files.ANT, 8, "nv_ant.xml"), (files.HUMANOID, 21, "nv_humanoid.xml")]


@pytest.mark.parametrize(("path", "dofs", "mjcf"), ROBOTS, ids=["ant", "humanoid"])
def test_newton_loads_the_expected_dofs_and_the_mass_of_the_wheels_mjcf_model(
    assets: Path, path: str, dofs: int, mjcf: str
) -> None:
    import newton
    import numpy as np

    robot, reference = newton.ModelBuilder(), newton.ModelBuilder()
    robot.add_usd(str(assets / path))
    reference.add_mjcf(str(Path(newton.__file__).parent / "examples" / "assets" / mjcf))
    assert robot.joint_dof_count == 6 + dofs  # six of the floating base
    assert sum(robot.body_mass) == pytest.approx(sum(reference.body_mass), rel=0.01)
    for mass, inertia in zip(robot.body_mass, robot.body_inertia, strict=True):
        assert mass > 0
        assert_possible(list(np.linalg.eigvalsh(np.array(inertia).reshape(3, 3))))


def test_the_humanoid_joints_are_those_of_the_stock_actuators(assets: Path) -> None:
    import re

    import newton

    builder = newton.ModelBuilder()
    builder.add_usd(str(assets / files.HUMANOID))
    joints = {label.split("/")[-1] for label in builder.joint_label if "/" in label}
    # The stock configs address one axis of a ball-like joint as "<joint>:<axis>".
    axes = {"lower_waist": 2, **{f"{s}_{p}": n for s in ("left", "right") for p, n in BALL_LIKE.items()}}
    names = {name for joint in joints for name in ([f"{joint}:{i}" for i in range(axes.get(joint, 0))] or [joint])}
    moving = names - {"head", "left_hand", "right_hand"}
    assert len(moving) == 21
    unmatched = [name for name in moving if not any(re.fullmatch(pattern, name) for pattern in STOCK_HUMANOID)]
    assert unmatched == []
    unused = [pattern for pattern in STOCK_HUMANOID if not any(re.fullmatch(pattern, name) for name in moving)]
    assert unused == []


BALL_LIKE = {"thigh": 3, "foot": 2, "upper_arm": 2}
STOCK_HUMANOID = (  # keys of isaaclab_assets.robots.humanoid
    ".*_waist.*",
    ".*_upper_arm.*",
    "pelvis",
    ".*_lower_arm",
    ".*_thigh:0",
    ".*_thigh:1",
    ".*_thigh:2",
    ".*_shin",
    ".*_foot.*",
)


def assert_possible(moments: list[float]) -> None:
    """Check principal moments: positive, and none larger than the other two together."""
    assert min(moments) > 0
    assert all(a <= (b + c) * (1 + 1e-5) for a, b, c in permutations(moments))
