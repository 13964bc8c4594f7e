"""Robots from URDF: the contents of their files, and stock tasks with them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlnb_tasks import files

from rlnb import RlnbError

LEGS = ("FL", "FR", "RL", "RR")
TASKS = {"Isaac-Velocity-Flat-UnitreeGo2": 12, "Isaac-Reach-Franka": 9}
SCRIPT = """
import json, sys
import gymnasium as gym
import isaaclab_tasks
import torch
from isaaclab.app import launch_simulation
from isaaclab_tasks.utils import resolve_task_config

if sys.argv[1] == "ovphysx":
    from rlnb.worker.isaac.ovphysx import provide_pinned_memory

    provide_pinned_memory()
for task in sys.argv[2:]:
    cfg, _ = resolve_task_config(task, None, overrides=[f"physics={sys.argv[1]}"])
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = 2, "cpu", 1
    with launch_simulation(cfg, {"device": "cpu"}):
        env = gym.make(task, cfg=cfg)
        env.reset()
        robot = env.unwrapped.scene.articulations["robot"]
        for _ in range(50):
            env.step(torch.zeros(env.action_space.shape))
        state = torch.cat([robot.data.joint_pos.torch, robot.data.root_pos_w.torch], dim=1)
        print("FOUND", json.dumps({
            "task": task, "joints": robot.joint_names, "bodies": robot.body_names,
            "finite": state.isfinite().all().item(), "fixed": robot.is_fixed_base,
            "height": robot.data.root_pos_w.torch[:, 2].mean().item(),
            "off": (robot.data.joint_pos.torch - robot.data.default_joint_pos.torch).abs().max().item(),
            "mass": robot.data.body_mass.torch[0].sum().item(),
        }), flush=True)
        env.close()
"""


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an asset root with the robots, the ground, the sky and the markers."""
    for name in ("pxr", "urdf_usd_converter"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed here")
    from rlnb.worker.assets import packs

    built = packs.build(tmp_path_factory.mktemp("assets"), on_request=True)
    assert built.failed == {}
    return built.folder


def test_bodies_are_where_nvidias_assets_have_them_and_masses_are_the_urdfs(robots: Path) -> None:
    from pxr import Usd, UsdPhysics

    for path, names, kg in (
        (files.GO2, {"base", *(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf", "foot"))}, 15.0),
        (
            files.PANDA,
            {*(f"panda_link{n}" for n in range(8)), "panda_hand", "panda_leftfinger", "panda_rightfinger"},
            18.0,
        ),
    ):
        stage = Usd.Stage.Open(str(robots / path))
        bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
        assert {body.GetName() for body in bodies} == names
        if path == files.GO2:
            assert all(body.GetParent() == stage.GetDefaultPrim() for body in bodies)
        else:
            arm = "/".join(f"panda_link{number}" for number in range(8))
            assert stage.GetPrimAtPath(f"/panda/Geometry/{arm}/panda_hand/panda_leftfinger") in bodies
        assert sum(UsdPhysics.MassAPI(body).GetMassAttr().Get() for body in bodies) == pytest.approx(kg, rel=0.1)
        for joint in (UsdPhysics.Joint(prim) for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)):
            for end in (joint.GetBody0Rel(), joint.GetBody1Rel()):
                assert all(stage.GetPrimAtPath(target).IsValid() for target in end.GetTargets()), joint.GetPath()


def test_the_arm_is_its_own_articulation_root_and_has_a_variant_for_each_engine(robots: Path) -> None:
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(robots / files.PANDA))
    roots = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    assert roots == [stage.GetDefaultPrim()]
    assert stage.GetDefaultPrim().GetVariantSet("Physics").GetVariantNames() == ["mujoco", "physx"]


def test_the_hand_collides_as_the_box_around_its_mesh(robots: Path) -> None:
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(robots / files.PANDA))
    hand = next(prim for prim in stage.Traverse() if prim.GetName() == "panda_hand")
    (box,) = [prim for prim in hand.GetChildren() if prim.HasAPI(UsdPhysics.CollisionAPI)]
    assert box.IsA(UsdGeom.Cube)
    bound = UsdGeom.BBoxCache(0.0, ["default", "guide"]).ComputeRelativeBound(box, hand).ComputeAlignedRange()
    assert list(bound.GetSize()) == pytest.approx([0.063, 0.204, 0.092], abs=0.001)  # metres


def test_joint_frames_of_parent_and_child_coincide(robots: Path) -> None:
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    for path in (files.GO2, files.PANDA):
        stage = Usd.Stage.Open(str(robots / path))
        cache = UsdGeom.XformCache()
        joints = [UsdPhysics.Joint(prim) for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
        assert len(joints) > 8
        for joint in joints:
            ends = ((joint.GetBody0Rel(), joint.GetLocalPos0Attr()), (joint.GetBody1Rel(), joint.GetLocalPos1Attr()))
            places = [
                cache.GetLocalToWorldTransform(stage.GetPrimAtPath(body.GetTargets()[0])).Transform(Gf.Vec3d(at.Get()))
                for body, at in ends
                if body.GetTargets()
            ]
            assert len(places) == 1 or Gf.IsClose(*places, 1e-5), joint.GetPath()


def test_a_build_without_the_packages_names_the_command_to_install_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("pxr")
    from rlnb_tasks import urdf_robots

    monkeypatch.setattr(urdf_robots, "PACKAGE", "no-such-package")
    with pytest.raises(RlnbError, match=r"no-such-package.*pip install example-robot-data"):
        urdf_robots.write(tmp_path)


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.parametrize("physics", ["newton_mjwarp", "ovphysx"])
def test_stock_tasks_run_with_these_robots(robots: Path, physics: str) -> None:
    for name in ("isaaclab", *(["ovphysx"] if physics == "ovphysx" else [])):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed here")
    environment = {**os.environ, "ISAACSIM_ASSET_ROOT": str(robots)}
    tasks = {**TASKS, "Isaac-Lift-Franka": 9} if physics == "newton_mjwarp" else TASKS
    command = [sys.executable, "-c", SCRIPT, physics, *tasks]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    found = {f["task"]: f for f in (json.loads(x[6:]) for x in done.stdout.splitlines() if x.startswith("FOUND "))}
    assert done.returncode == 0, f"after {list(found)}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    for task, joints in tasks.items():
        assert len(found[task]["joints"]) == joints
        assert found[task]["finite"]
    assert found["Isaac-Reach-Franka"]["fixed"]
    assert found["Isaac-Velocity-Flat-UnitreeGo2"]["height"] > 0.2, "the robot stands"
    assert found["Isaac-Reach-Franka"]["off"] < 0.3, "the robot holds its pose"
