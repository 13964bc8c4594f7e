"""Soft bodies that Isaac Lab cuts into tetrahedra with a package that may be missing. No simulation starts."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.requests import card

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


def config(spawn: str, *, surface: bool = False) -> Any:
    import isaaclab.sim as sim_utils
    from isaaclab.assets import DeformableObjectCfg
    from isaaclab_newton.sim.spawners import materials

    kind = materials.NewtonSurfaceDeformableBodyMaterialCfg if surface else materials.NewtonDeformableBodyMaterialCfg
    spawns = {
        "cuboid": lambda: sim_utils.MeshCuboidCfg(size=(1.0, 1.0, 1.0), physics_material=kind()),
        "file": lambda: sim_utils.UsdFileCfg(usd_path="soft.usd"),
    }
    body = DeformableObjectCfg(prim_path="/World/soft", spawn=spawns[spawn]())
    return SimpleNamespace(scene=SimpleNamespace(soft=body), decimation=2)


@pytest.mark.parametrize(
    ("spawn", "surface", "needed"), [("cuboid", False, True), ("cuboid", True, False), ("file", False, False)]
)
def test_only_a_volume_that_is_made_of_a_shape_is_cut(
    spawn: str, surface: bool, needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card, "TETRAHEDRA_MODULE", "no_such_module")
    missing = card.missing_for_soft_bodies(config(spawn, surface=surface))
    assert [requirement.startswith("pytetwild") for requirement in missing] == [True] * needed


def test_with_the_package_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "TETRAHEDRA_MODULE", "json")
    assert card.missing_for_soft_bodies(config("cuboid")) == ()
