"""The names, limits and mass properties in the files of ant and humanoid."""

from itertools import permutations
from pathlib import Path

import pytest
from rlnb_tasks import files

HINGE = "PhysicsRevoluteJoint"
ANT_LEGS = ("front_left", "front_right", "left_back", "right_back")
ANT_FEET = {  # degrees, from the stock ant; the task starts the feet at 45 degrees in these directions
    "front_left_foot": (30.0, 100.0),
    "front_right_foot": (-100.0, -30.0),
    "left_back_foot": (-100.0, -30.0),
    "right_back_foot": (30.0, 100.0),
}
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
ROBOTS = [(files.ANT, 8, "nv_ant.xml"), (files.HUMANOID, 21, "nv_humanoid.xml")]


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


@pytest.mark.parametrize(("path", "dofs", "mjcf"), ROBOTS, ids=["ant", "humanoid"])
def test_newton_loads_the_expected_dofs_and_the_mass_of_the_wheels_mjcf_model(
    assets: Path, path: str, dofs: int, mjcf: str
) -> None:
    import newton
    import numpy as np

    robot, reference = newton.ModelBuilder(), newton.ModelBuilder()
    robot.add_usd(str(assets / path))
    reference.add_mjcf(str(Path(newton.__file__).parent / "examples" / "assets" / mjcf))
    assert robot.joint_dof_count == 6 + dofs  # six for the floating base
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


def test_no_link_of_the_humanoid_keeps_its_accelerations(assets: Path) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(assets / files.HUMANOID))
    links = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert len(links) == 16
    assert not any(link.HasAttribute("physxRigidBody:retainAccelerations") for link in links)


def assert_possible(moments: list[float]) -> None:
    """Assert that principal moments are positive, and that none is larger than the sum of the other two."""
    assert min(moments) > 0
    assert all(a <= (b + c) * (1 + 1e-5) for a, b, c in permutations(moments))
