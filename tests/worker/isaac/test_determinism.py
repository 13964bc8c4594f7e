"""Isaac Lab's and torch's settings for equal numbers in every process, and their end."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb.errors import RlnbError
from rlnb.studies import verify_determinism
from rlnb.worker.isaac import device

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.fixture(autouse=True)
def workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(device.CUBLAS, ":4096:8")


def config(physics: Any) -> Any:
    return SimpleNamespace(sim=SimpleNamespace(device="cpu", physics=physics))


def newton() -> Any:
    from isaaclab_newton.physics import NewtonCfg

    return NewtonCfg()


def test_physics_and_warp_are_deterministic_until_the_end() -> None:
    import warp

    env_cfg, before = config(newton()), warp.config.deterministic
    with device.deterministic_simulation(env_cfg, {}):
        assert env_cfg.sim.physics.deterministic is True
        assert warp.config.deterministic == warp.DeterministicMode.RUN_TO_RUN
    assert warp.config.deterministic == before == warp.DeterministicMode.NOT_GUARANTEED


def test_physx_that_is_chosen_at_the_launch_is_deterministic_too() -> None:
    from isaaclab.physics import PhysxAutoCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_physx.physics import PhysxCfg

    for arguments, kind in (({}, OvPhysxCfg), ({"require_kit": True}, PhysxCfg)):
        env_cfg = config(PhysxAutoCfg(isaacsim_physx=PhysxCfg(), ovphysx=OvPhysxCfg()))
        with device.deterministic_simulation(env_cfg, arguments):
            assert isinstance(env_cfg.sim.physics, kind)
            assert env_cfg.sim.physics.deterministic is True


def test_torch_is_deterministic_until_the_end() -> None:
    import torch

    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), cudnn.benchmark, cudnn.deterministic
    with device.deterministic_torch():
        assert torch.are_deterministic_algorithms_enabled()
        assert (cudnn.benchmark, cudnn.deterministic) == (False, True)
    assert (torch.are_deterministic_algorithms_enabled(), cudnn.benchmark, cudnn.deterministic) == before


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Newton deterministic mode RUN_TO_RUN is not supported by VBDSolverCfg."),
        RuntimeError("cumsum_cuda_kernel does not have a deterministic implementation"),
    ],
)
def test_what_cannot_be_deterministic_is_named_with_the_argument(error: Exception) -> None:
    with (
        pytest.raises(RlnbError, match=rf"This training run cannot be deterministic: .*{error}"),
        device.deterministic_simulation(config(newton()), {}),
    ):
        raise error


def test_other_errors_are_raised_unchanged() -> None:
    import warp

    with pytest.raises(RuntimeError, match="out of memory"), device.deterministic_simulation(config(newton()), {}):
        raise RuntimeError("out of memory")
    assert warp.config.deterministic == warp.DeterministicMode.NOT_GUARANTEED


@pytest.mark.slow  # a minute the first time: all of Warp's kernels are compiled again
def test_a_deterministic_training_run_gives_the_same_numbers_twice(folder: Path) -> None:
    proof = verify_determinism("Isaac-Cartpole-Direct", max_iterations=2, num_envs=16, device="cpu", deterministic=True)
    assert proof.deterministic, proof.difference
    run = rlnb.runs(tag="verify-determinism")[0]
    assert run.config["env.sim.physics.deterministic"] is True
