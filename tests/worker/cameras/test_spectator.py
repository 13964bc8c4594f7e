"""The picture of the first envs, drawn from a USD stage of plain shapes by Newton, without a simulation."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("newton") is None, reason="newton is not installed here"),
]


def stage_of(num_envs: int) -> Any:
    """Return a stage with a ground. Each env has a rigid body with a box, and a table that is not a rigid body."""
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.Xform.Define(stage, "/World")
    UsdGeom.Cube.Define(stage, "/World/ground")
    for number in range(num_envs):
        env = UsdGeom.Xform.Define(stage, f"/World/envs/env_{number}")
        env.AddTranslateOp().Set(Gf.Vec3d(4.0 * number, 0.0, 0.0))
        UsdGeom.Cube.Define(stage, f"/World/envs/env_{number}/table")
        body = UsdGeom.Xform.Define(stage, f"/World/envs/env_{number}/robot")
        UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
        UsdGeom.Cube.Define(stage, f"/World/envs/env_{number}/robot/box")
    return stage


@pytest.mark.parametrize("envs", [[0, 1], [3, 1]])
def test_only_some_envs_are_drawn_and_their_bodies_have_the_paths_of_the_simulation(envs: list[int]) -> None:
    from rlnb.worker.cameras.spectator import drawn

    origins = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    model = drawn(stage_of(5), "/World/envs", envs, origins, "cpu")
    assert list(model.body_label) == [f"/World/envs/env_{number}/robot" for number in envs]
    assert model.shape_count == 1 + 2 * 2, "one ground, and a box and a table per env"
