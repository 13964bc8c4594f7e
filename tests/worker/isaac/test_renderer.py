"""The renderer of an added camera, for the physics configs of Isaac Lab. No simulation starts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.isaac.renderer import renderer_for, resolve_backends

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


def config(physics: str, device: str, camera: Any = None) -> Any:
    """Return an env config with the physics of a selector."""
    from isaaclab.physics.physics_manager_cfg import PhysxAutoCfg
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_physx.physics import PhysxCfg

    configs = {
        "newton_mjwarp": NewtonCfg,
        "isaacsim_physx": PhysxCfg,
        "default": lambda: None,
        "ovphysx": OvPhysxCfg,
        "physx": lambda: PhysxAutoCfg(isaacsim_physx=PhysxCfg(), ovphysx=OvPhysxCfg()),
        "physx without ovphysx": lambda: PhysxAutoCfg(isaacsim_physx=PhysxCfg()),
    }
    return SimpleNamespace(sim=SimpleNamespace(physics=configs[physics](), device=device), scene=camera)


@pytest.fixture
def ovrtx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of that name, which is not imported."""
    (tmp_path / "ovrtx.py").write_text("raise AssertionError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ovrtx", raising=False)


@pytest.mark.parametrize(
    ("physics", "expected"),
    [
        ("newton_mjwarp", "newton_warp"),
        ("ovphysx", "newton_warp"),
        ("physx", "newton_warp"),
        ("isaacsim_physx", None),
        ("physx without ovphysx", None),
        ("default", None),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_an_added_camera_starts_no_other_simulator_than_the_training_run(
    physics: str, device: str, expected: str | None
) -> None:
    if importlib.util.find_spec("ovrtx") is not None:
        pytest.skip("ovrtx is installed here")
    env_cfg = config(physics, device)
    resolve_backends(env_cfg, {})
    renderer = renderer_for(env_cfg)
    assert (renderer and renderer.renderer_type) == expected


@pytest.mark.parametrize(
    ("physics", "device", "expected"),
    [
        ("ovphysx", "cuda:0", "ovrtx"),
        ("physx", "cuda:0", "ovrtx"),
        ("ovphysx", "cpu", "newton_warp"),
        ("newton_mjwarp", "cuda:0", "newton_warp"),
    ],
)
@pytest.mark.usefixtures("ovrtx")
def test_rtx_outside_of_isaac_sim_draws_ovphysx_on_a_gpu(physics: str, device: str, expected: str) -> None:
    env_cfg = config(physics, device)
    resolve_backends(env_cfg, {})
    assert renderer_for(env_cfg).renderer_type == expected


@pytest.mark.parametrize(
    ("physics", "camera", "expected"),
    [("physx", False, "OvPhysxCfg"), ("physx", True, "PhysxCfg"), ("physx without ovphysx", False, "PhysxCfg")],
)
def test_automatic_physics_is_that_of_the_training_run(physics: str, camera: bool, expected: str) -> None:
    from isaaclab.sensors import CameraCfg

    env_cfg = config(physics, "cpu", CameraCfg(prim_path="/World/camera", width=4, height=4) if camera else None)
    resolve_backends(env_cfg, {})
    assert type(env_cfg.sim.physics).__name__ == expected


def test_an_experience_of_isaac_sim_keeps_its_physics() -> None:
    env_cfg = config("physx", "cpu")
    resolve_backends(env_cfg, {"device": "cpu", "experience": "my.kit"})
    assert type(env_cfg.sim.physics).__name__ == "PhysxCfg"


@pytest.mark.parametrize(
    ("physics", "expected"), [("isaacsim_physx", "isaac_rtx"), ("newton_mjwarp", "ovrtx"), ("physx", "ovrtx")]
)
def test_an_automatic_rtx_renderer_becomes_one_that_names_its_data_types(physics: str, expected: str) -> None:
    from isaaclab.sensors import CameraCfg
    from isaaclab_tasks.utils.presets import MultiBackendRendererCfg

    camera = CameraCfg(prim_path="/World/camera", width=4, height=4, renderer_cfg=MultiBackendRendererCfg().rtx)
    assert camera.renderer_cfg.supported_output_types() is None
    resolve_backends(config(physics, "cpu", camera), {})
    assert camera.renderer_cfg.renderer_type == expected
    assert "rgb" in map(str, camera.renderer_cfg.supported_output_types())
