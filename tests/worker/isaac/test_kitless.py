"""Physics and renderers where a config leaves them to Isaac Sim, and there is none. No simulation starts."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from rlnb.worker.isaac import renderer as module

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
    pytest.mark.skipif(importlib.util.find_spec("isaacsim") is not None, reason="Isaac Sim is installed here"),
]


def config(base: type | None = None, **options: Any) -> Any:
    """Return an env config of a user, in which nothing is said about physics."""
    from isaaclab.envs import DirectRLEnvCfg
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.utils import configclass

    @configclass
    class Mine(base or DirectRLEnvCfg):  # type: ignore[misc]
        pass

    if base is not None:
        return Mine()
    scene = InteractiveSceneCfg(num_envs=1, env_spacing=1.0)
    return Mine(observation_space=1, action_space=1, scene=scene, **options)


def test_a_config_without_physics_gets_newton() -> None:
    from isaaclab_newton.physics import NewtonCfg

    cfg = config()
    assert module.fill_kitless(cfg) == ("sim.physics=NewtonCfg()",)
    assert isinstance(cfg.sim.physics, NewtonCfg)
    assert module.fill_kitless(cfg) == ()


@pytest.mark.parametrize("physics", ["newton", "ovphysx", None])
def test_a_camera_without_a_renderer_gets_the_one_of_its_physics(physics: str | None) -> None:
    from isaaclab.sensors import TiledCameraCfg
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg

    cfg = config()
    cfg.sim.physics = {"newton": NewtonCfg(), "ovphysx": OvPhysxCfg(), None: None}[physics]
    cfg.scene.camera = TiledCameraCfg(prim_path="/World/camera", width=4, height=4, spawn=None)
    chosen = module.fill_kitless(cfg)
    assert chosen[-1] == "camera.renderer_cfg=NewtonWarpRendererCfg()"
    assert len(chosen) == (2 if physics is None else 1)
    assert cfg.scene.camera.renderer_cfg.renderer_type == "newton_warp"


def test_a_renderer_that_a_user_chose_stays() -> None:
    from isaaclab.sensors import TiledCameraCfg
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.renderers import OVRTXRendererCfg

    cfg, renderer = config(), OVRTXRendererCfg()
    cfg.sim.physics = NewtonCfg()
    cfg.scene.camera = TiledCameraCfg(prim_path="/World/camera", width=4, height=4, spawn=None, renderer_cfg=renderer)
    assert module.fill_kitless(cfg) == ()
    assert type(cfg.scene.camera.renderer_cfg) is OVRTXRendererCfg


def test_what_a_user_chose_stays() -> None:
    from isaaclab.sensors import TiledCameraCfg
    from isaaclab_physx.physics import PhysxCfg

    cfg = config()
    cfg.sim.physics = PhysxCfg()
    cfg.scene.camera = TiledCameraCfg(prim_path="/World/camera", width=4, height=4, spawn=None)
    renderer = cfg.scene.camera.renderer_cfg
    assert module.fill_kitless(cfg) == ()
    assert cfg.scene.camera.renderer_cfg is renderer
    assert isinstance(cfg.sim.physics, PhysxCfg)


def test_tasks_of_isaac_lab_and_those_derived_from_them_stay_as_they_are() -> None:
    from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

    cfg = config(CartpoleEnvCfg)
    cfg.sim.physics = None
    assert module.fill_kitless(cfg) == ()
    assert cfg.sim.physics is None


@pytest.mark.parametrize(("package", "chosen"), [("isaaclab_mimic.envs", 0), ("isaaclabs_of_mine", 1)])
def test_only_packages_of_isaac_lab_are_left_alone(package: str, chosen: int) -> None:
    cfg = config()
    type(cfg).__module__ = package
    assert len(module.fill_kitless(cfg)) == chosen


def test_isaac_sim_keeps_its_own_physics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "isaacsim_folder", lambda: "/isaacsim")
    cfg = config()
    assert module.fill_kitless(cfg) == ()
    assert cfg.sim.physics is None
