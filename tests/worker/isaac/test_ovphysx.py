"""OvPhysX needs two packages, and memory that Warp cannot allocate without CUDA. Most tests need neither package."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rlnb import RlnbError
from rlnb.worker.isaac import ovphysx

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

NO_PACKAGE = ("no_such_package",)
PINNED = """
import sys, warp
from rlnb.worker.isaac.ovphysx import provide_pinned_memory
fix, version = sys.argv[1:]
warp.init()
warp.__version__ = version or warp.__version__
try:
    if fix:
        provide_pinned_memory()
    values = warp.zeros(1000, dtype=warp.float32, device="cpu", pinned=True)
    values.fill_(2.0)
    print("sum", values.numpy().sum())
except Exception as exc:
    print(type(exc).__name__, exc)
"""


def config(physics: str) -> SimpleNamespace:
    """Return an env config with the physics of a selector."""
    from isaaclab.physics.physics_manager_cfg import PhysxAutoCfg
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_physx.physics import PhysxCfg

    configs = {
        "newton_mjwarp": NewtonCfg,
        "ovphysx": OvPhysxCfg,
        "physx": lambda: PhysxAutoCfg(isaacsim_physx=PhysxCfg(), ovphysx=OvPhysxCfg()),
    }
    return SimpleNamespace(sim=SimpleNamespace(physics=configs[physics](), device="cpu"))


def pinned(fix: bool, version: str = "") -> str:
    """Return what a fresh process prints that allocates pinned memory and sees no GPU."""
    argv = [sys.executable, "-c", PINNED, "yes" if fix else "", version]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, check=True).stdout


def test_without_cuda_ordinary_memory_serves_as_pinned_memory() -> None:
    assert "sum 2000.0" in pinned(fix=True)
    assert "RuntimeError Failed to allocate" in pinned(fix=False), "Warp no longer needs the fix"


def test_an_unknown_warp_without_pinned_memory_is_named() -> None:
    text = pinned(fix=True, version="9.1.0")
    assert "RlnbError OvPhysX needs pinned memory, which Warp 9.1.0 allocates only on a machine with CUDA" in text
    assert "physics='newton_mjwarp'" in text


@pytest.mark.parametrize("physics", ["ovphysx", "physx"])
def test_a_missing_package_is_named_before_an_env_is_made(physics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ovphysx, "PACKAGES", NO_PACKAGE)
    env_cfg = config(physics)
    assert ovphysx.missing_for(env_cfg, {}) == NO_PACKAGE
    assert type(env_cfg.sim.physics).__name__ == "OvPhysxCfg", "automatic physics is resolved"
    with pytest.raises(RlnbError, match=r"OvPhysX, which needs no_such_package in .*\[physx\].*newton_mjwarp"):
        ovphysx.prepare(env_cfg)


def test_other_physics_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ovphysx, "PACKAGES", NO_PACKAGE)
    monkeypatch.setattr(ovphysx, "provide_pinned_memory", pytest.fail)
    assert ovphysx.missing_for(config("newton_mjwarp"), {}) == ()
    ovphysx.prepare(config("newton_mjwarp"))
    assert ovphysx.missing_for(config("physx"), {"require_kit": True}) == (), "this one runs in Isaac Sim"
