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


def test_each_variant_of_the_hand_has_the_tendons_of_its_engine_only(assets: Path) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / files.SHADOW_HAND))
    stage.SetEditTarget(stage.GetSessionLayer())  # other tests may get the same layer
    variants = stage.GetDefaultPrim().GetVariantSet("Physics")
    assert variants.GetVariantNames() == ["mujoco", "physx"]
    assert variants.GetVariantSelection() == "mujoco"
    for name, other in (("mujoco", "physx"), ("physx", "mujoco")):
        variants.SetVariantSelection(name)
        of_physx, of_mujoco = tendons_of_physx(stage), [prim.GetTypeName() for prim in stage.Traverse()]
        assert bool(of_physx) == (name == "physx"), other
        assert ("MjcTendon" in of_mujoco) == (name == "mujoco"), other
    assert {tendon for _, _, tendon in of_physx} == {f"rh_{finger}J0" for finger in (*FINGERS, "LF")}
    for tendon in {tendon for _, _, tendon in of_physx}:
        axes = [(joint, kind) for joint, kind, name in of_physx if name == tendon]
        root = next(joint for joint, kind in axes if kind == "PhysxTendonAxisRootAPI")
        assert root.GetAttribute(f"physxTendon:{tendon}:stiffness").Get() == pytest.approx(0.5)
        geared = {
            joint.GetName() for joint, _ in axes if any(joint.GetAttribute(f"physxTendon:{tendon}:gearing").Get())
        }
        assert geared == {tendon.replace("J0", "J1"), tendon.replace("J0", "J2")}
        assert all("PhysicsDriveAPI:angular" in joint.GetPrimTypeInfo().GetAppliedAPISchemas() for joint, _ in axes)


def tendons_of_physx(stage: object) -> list[tuple]:
    """Return the joint, schema and tendon of each axis in PhysX's schemas, which plain USD does not know."""
    found = []
    for prim in stage.Traverse():  # type: ignore[attr-defined]
        listing = prim.GetMetadata("apiSchemas")
        for schema in listing.GetAddedOrExplicitItems() if listing else ():
            kind, _, tendon = schema.partition(":")
            if kind.startswith("PhysxTendonAxis"):
                found.append((prim, kind, tendon))
    return found


def test_no_isaac_sim_schemas_are_left_and_gravity_is_compensated(assets: Path) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    text = (assets / files.SHADOW_HAND).read_text()
    assert "IsaacRobotAPI" not in text
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
