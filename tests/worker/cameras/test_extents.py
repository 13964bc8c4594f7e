"""Boxes around bodies, from a USD stage of plain shapes, without a simulation."""

from __future__ import annotations

import importlib.util
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlnb.worker.cameras.framing import Extents, body_boxes

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pxr") is None, reason="pxr is not installed here")
ROBOT = "/World/envs/env_0/robot"


@pytest.fixture
def stage() -> Any:
    """Return a stage with a base, whose prim is scaled, and an arm below it, 1 m higher. Both are rigid bodies."""
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.Xform.Define(stage, ROBOT).AddTranslateOp().Set(Gf.Vec3d(5.0, 0.0, 0.0))
    base = UsdGeom.Xform.Define(stage, f"{ROBOT}/base")
    base.AddScaleOp().Set(Gf.Vec3f(2.0, 2.0, 2.0))
    arm = UsdGeom.Xform.Define(stage, f"{ROBOT}/base/arm")
    arm.AddTranslateOp().Set(Gf.Vec3d(0.0, 0.0, 1.0))
    for body in (base, arm):
        UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    cube = UsdGeom.Cube.Define(stage, f"{ROBOT}/base/cube")
    cube.CreateSizeAttr(0.5)
    collider = UsdGeom.Cube.Define(stage, f"{ROBOT}/base/collider")
    collider.CreatePurposeAttr(UsdGeom.Tokens.guide)
    collider.CreateSizeAttr(9.0)
    points = UsdGeom.Mesh.Define(stage, f"{ROBOT}/base/arm/visual/mesh")
    points.CreatePointsAttr([(0.0, 0.0, 0.0), (0.1, 0.2, 0.3)])
    UsdGeom.Sphere.Define(stage, f"{ROBOT}/base/arm/hidden").CreateVisibilityAttr(UsdGeom.Tokens.invisible)
    UsdGeom.Cube.Define(stage, f"{ROBOT}/ornament").CreateSizeAttr(50.0)
    return stage


def test_a_box_holds_the_visible_shapes_of_its_own_body_alone(stage: Any) -> None:
    base, arm = body_boxes(stage, ROBOT, ["base", "arm"])
    assert base == (pytest.approx((-0.5, -0.5, -0.5)), pytest.approx((0.5, 0.5, 0.5)))
    assert arm == (pytest.approx((0.0, 0.0, 0.0)), pytest.approx((0.2, 0.4, 0.6)))


def test_a_body_without_a_visible_shape_is_as_large_as_its_hidden_ones_and_one_without_any_is_a_point(
    stage: Any,
) -> None:
    stage.GetPrimAtPath(f"{ROBOT}/base/cube").SetActive(False)
    base, ghost = body_boxes(stage, ROBOT, ["base", "ghost"])
    assert base == (pytest.approx((-9.0, -9.0, -9.0)), pytest.approx((9.0, 9.0, 9.0)))
    assert ghost == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def test_an_asset_is_found_by_a_regular_expression_too_and_a_missing_one_has_no_size(stage: Any) -> None:
    assert body_boxes(stage, "/World/envs/env_[^/]+/rob.*", ["base"]) == body_boxes(stage, ROBOT, ["base"])
    assert body_boxes(stage, "/World/envs/env_0/nothing", ["base"]) == [((0.0,) * 3, (0.0,) * 3)]


def asset(positions: list[list[list[float]]], rotation: tuple[float, ...], names: list[str], path: str) -> Any:
    place = torch.tensor(positions)
    data = SimpleNamespace(
        body_pos_w=SimpleNamespace(torch=place),
        body_quat_w=SimpleNamespace(torch=torch.tensor(rotation).expand(*place.shape[:2], 4)),
    )
    return SimpleNamespace(data=data, body_names=names, cfg=SimpleNamespace(prim_path=path))


def env_of(stage: Any, articulations: dict[str, Any], objects: dict[str, Any]) -> Any:
    scene = SimpleNamespace(
        stage=stage,
        env_regex_ns="/World/envs/env_.*",
        env_ns="/World/envs",
        articulations=articulations,
        rigid_objects=objects,
    )
    return SimpleNamespace(scene=scene, num_envs=2, device="cpu")


def test_boxes_move_and_turn_with_their_bodies(stage: Any) -> None:
    half = math.sqrt(0.5)  # a quarter turn about z, as x, y, z, w
    arm = asset([[[1.0, 0.0, 0.0]], [[0.0, 0.0, 7.0]]], (0.0, 0.0, half, half), ["arm"], "/World/envs/env_.*/robot")
    corners = Extents(env_of(stage, {"arm": arm}, {})).of_robots()
    assert corners.amin(dim=1)[0].tolist() == pytest.approx([0.6, 0.0, 0.0], abs=1e-6)
    assert corners.amax(dim=1)[0].tolist() == pytest.approx([1.0, 0.2, 0.6], abs=1e-6)
    assert corners.amax(dim=1)[1].tolist() == pytest.approx([0.0, 0.2, 7.6], abs=1e-6)
    assert torch.equal(Extents(env_of(stage, {"arm": arm}, {}), [1]).of_robots(), corners[1:])


def test_a_fixed_base_that_is_longer_than_the_rest_is_no_part_of_the_picture(stage: Any) -> None:
    place = [[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]] * 2
    robot = asset(place, (0.0, 0.0, 0.0, 1.0), ["base", "arm"], "/World/envs/env_.*/robot")
    assert Extents(env_of(stage, {"robot": robot}, {})).of_robots().shape == (2, 16, 3)
    robot.is_fixed_base = True
    (points,) = Extents(env_of(stage, {"robot": robot}, {}), [0]).of_robots()
    assert points.amin(dim=0).tolist() == pytest.approx([0.0, 0.0, 1.0]), "the arm alone"
    robot.body_names = ["arm", "base"]
    assert Extents(env_of(stage, {"robot": robot}, {})).of_robots().shape == (2, 16, 3), "a base of usual size"


def test_objects_are_shown_with_robots_that_they_are_near_and_are_the_robots_if_there_are_no_others(
    stage: Any,
) -> None:
    still = (0.0, 0.0, 0.0, 1.0)
    robot = asset([[[0.0, 0.0, 0.0]]] * 2, still, ["base"], "/World/envs/env_.*/robot")
    ball = asset([[[1.0, 0.0, 0.0]], [[-90.0, 0.0, 0.0]]], still, ["arm"], "/World/envs/env_.*/robot")
    both = Extents(env_of(stage, {"robot": robot}, {"ball": ball}))
    assert both.of_robots().shape == (2, 8, 3)
    points = both.with_near_objects()
    assert points.shape == (2, 16, 3)
    assert points[0].isfinite().all()
    assert points[1, :8].isfinite().all()
    assert points[1, 8:].isnan().all(), "90 m away"
    alone = Extents(env_of(stage, {}, {"ball": ball}))
    assert alone.of_robots().shape == alone.with_near_objects().shape == (2, 8, 3)
    assert Extents(env_of(stage, {}, {})).of_robots().shape == (2, 0, 3)
