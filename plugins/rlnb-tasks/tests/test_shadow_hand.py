"""The joints, tendons and colours in the hand's file, and the refusal of an unsupported stage."""

from pathlib import Path

import pytest
from rlnb_tasks import files

from rlnb import RlnbError

FINGERS = ("FF", "MF", "RF")
JOINTS = {
    *("rh_WRJ2", "rh_WRJ1", "rh_LFJ5"),
    *(f"rh_{finger}J{n}" for finger in (*FINGERS, "LF") for n in (1, 2, 3, 4)),
    *(f"rh_THJ{n}" for n in (1, 2, 3, 4, 5)),
}


def test_the_hand_has_the_joints_and_tendons_of_the_stock_config(assets: Path) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / files.SHADOW_HAND))
    assert stage.GetDefaultPrim().GetName() == "right_hand"
    joints = {prim.GetName() for prim in stage.Traverse() if prim.GetTypeName() == "PhysicsRevoluteJoint"}
    assert joints == JOINTS
    welds = [prim.GetName() for prim in stage.Traverse() if prim.GetTypeName() == "PhysicsFixedJoint"]
    assert welds == ["rootJoint"]
    tendons = {prim.GetName(): prim for prim in stage.Traverse() if prim.GetTypeName() == "MjcTendon"}
    assert set(tendons) == {f"rh_{finger}J0" for finger in (*FINGERS, "LF")}
    for name, tendon in tendons.items():
        pulled = tendon.GetRelationship("mjc:path").GetTargets()
        assert [path.name for path in pulled] == [name.replace("J0", f"J{n}") for n in (1, 2)]
        motor = stage.GetPrimAtPath(f"/right_hand/Physics/{name.replace('rh_', 'rh_A_')}")
        assert motor.GetRelationship("mjc:target").GetTargets() == [tendon.GetPath()]
        assert motor.GetAttribute("mjc:gainPrm").Get()[0] == pytest.approx(0.5)
        assert motor.GetAttribute("mjc:biasPrm").Get()[1] == pytest.approx(-0.5)


def test_no_isaac_sim_schemas_are_left_and_gravity_is_compensated(assets: Path) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    text = (assets / files.SHADOW_HAND).read_text()
    assert "IsaacRobotAPI" not in text
    assert "physxTendon" not in text
    assert "/World" not in text
    stage = Usd.Stage.Open(str(assets / files.SHADOW_HAND))
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert len(bodies) == 25
    assert all(body.GetAttribute("mjc:gravcomp").Get() == 1.0 for body in bodies)
    meshes = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh) and prim.HasAttribute("primvars:normals")]
    assert len({tuple(UsdGeom.Gprim(mesh).GetDisplayColorAttr().Get()[0]) for mesh in meshes}) == 3


def test_an_unsupported_stage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pxr")
    pytest.importorskip("isaaclab")
    from rlnb_tasks import shadow_hand

    monkeypatch.setattr(shadow_hand, "SOURCE_SHA256", "0" * 64)
    with pytest.raises(RlnbError, match="not the file that rlnb-tasks supports"):
        shadow_hand.source()
    monkeypatch.setattr(shadow_hand, "SOURCE", "isaaclab/gone.usda")
    with pytest.raises(RlnbError, match=r"has no isaaclab/gone\.usda"):
        shadow_hand.source()
