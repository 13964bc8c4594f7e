"""The comparison of physics engines, with real envs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import rlnb
from rlnb.simulation import simulator
from rlnb.tasks.card import Selectors
from rlnb.tasks.requests import Engines
from rlnb.worker.isaac import ovphysx
from rlnb.worker.requests import engines

pytestmark = pytest.mark.isaaclab
BOTH = Selectors(physics=("newton_mjwarp", "ovphysx", "physx"))


@pytest.mark.parametrize(
    ("default", "selectors", "lacking", "names"),
    [
        ("newton", BOTH, (), ("newton_mjwarp", "ovphysx")),
        ("ovphysx", BOTH, (), ("ovphysx", "newton_mjwarp")),
        ("newton", BOTH, ("ovphysx",), ()),
        ("newton", Selectors(physics=("newton_mjwarp",)), (), ()),
        ("kit", BOTH, (), ()),
    ],
)
def test_two_engines_are_comparable_if_task_and_interpreter_have_both(
    default: str,
    selectors: Selectors,
    lacking: tuple[str, ...],
    names: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from isaaclab.envs import DirectRLEnvCfg
    from isaaclab_newton.physics import NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_physx.physics import PhysxCfg

    monkeypatch.setattr(ovphysx, "missing", lambda: lacking)
    env_cfg = DirectRLEnvCfg()
    env_cfg.sim.physics = {"newton": NewtonCfg, "ovphysx": OvPhysxCfg, "kit": PhysxCfg}[default]()
    assert engines.comparable(env_cfg, selectors) == names


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ovphysx") is None, reason="ovphysx is not installed here")
def test_both_engines_are_measured_in_one_process(folder: Path) -> None:
    task = rlnb.task("Isaac-Cartpole-Direct", num_envs=64)
    assert rlnb.task_card(task).engines == ("newton_mjwarp", "ovphysx")
    request = Engines(task=task, names=("newton_mjwarp", "ovphysx"), device="cpu")
    speeds = simulator.request(request, None, None).steps_per_s
    assert set(speeds) == {"newton_mjwarp", "ovphysx"}
    assert min(speeds.values()) > 100.0
