"""The backend's additions to RSL-RL: immediate events, complete checkpoints, a policy for Isaac Lab's observations."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.fixture
def backend() -> ModuleType:
    from rlnb_rsl_rl import backend

    return backend


class Model:
    """A policy of RSL-RL whose mean actions are ten times the observations, and whose sampled actions are zero."""

    reset_dones: Any = None

    def __call__(self, obs: Any, stochastic_output: bool) -> Any:
        return 0.0 * obs["policy"] if stochastic_output else 10.0 * obs["policy"]

    def reset(self, dones: Any) -> None:
        self.reset_dones = dones


def policy(backend: ModuleType, *, clip: float | None = None, deterministic: bool = True) -> Any:
    env = SimpleNamespace(unwrapped=SimpleNamespace(num_envs=2))
    return backend._Policy(Model(), clip, env, deterministic)


def test_a_scalar_is_on_the_disk_during_the_training(backend: ModuleType, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer = backend.EventWriter(str(tmp_path))
    try:
        writer.add_scalar("Train/mean_reward", 3.0, 7)
        events, deadline = EventAccumulator(str(tmp_path)), time.monotonic() + 5.0
        while "Train/mean_reward" not in events.Reload().Tags()["scalars"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert [(event.step, event.value) for event in events.Scalars("Train/mean_reward")] == [(7, 3.0)]
    finally:
        writer.stop()


def test_actions_are_clipped_to_the_agent_configs_range(backend: ModuleType) -> None:
    import torch

    obs = {"policy": torch.tensor([[1.0], [-0.1]])}
    assert policy(backend)(obs).tolist() == [[10.0], [-1.0]]
    assert policy(backend, clip=5.0)(obs).tolist() == [[5.0], [-1.0]]
    assert policy(backend, deterministic=False)(obs).tolist() == [[0.0], [0.0]]


def test_a_checkpoint_has_the_random_state_and_rsl_rls_own_infos(backend: ModuleType, tmp_path: Path) -> None:
    import torch

    runner = SimpleNamespace(save=lambda path, infos: torch.save(infos, path))
    backend._save_whole(runner)
    runner.save(str(tmp_path / "model_1.pt"), {"best": 2.0})
    infos = torch.load(tmp_path / "model_1.pt")
    assert infos["best"] == 2.0
    assert torch.equal(infos["random_state"]["cpu"], torch.get_rng_state())


def test_ranks_on_a_cpu_read_torchruns_variables(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    for kind in backend._ON_CPU.values():
        runner = object.__new__(kind)
        runner.cfg = {}
        runner._configure_multi_gpu()
        assert runner.is_distributed
        assert runner.cfg["multi_gpu"] == {"global_rank": 3, "local_rank": 1, "world_size": 4}
