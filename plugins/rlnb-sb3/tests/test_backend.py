"""The checkpoints of Stable-Baselines3's PPO, which restore its full state from tensors and numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rlnb

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
    pytest.mark.skipif(
        importlib.util.find_spec("stable_baselines3") is None, reason="stable-baselines3 is not installed here"
    ),
]


@pytest.fixture
def backend() -> ModuleType:
    from rlnb_sb3 import backend

    return backend


def agent(backend: ModuleType, folder: Path, *, seed: int, normalises: bool = True) -> Any:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import VecNormalize

    env = make_vec_env("Pendulum-v1", 2, seed=seed)
    agent = backend._Ppo("MlpPolicy", VecNormalize(env) if normalises else env, n_steps=32, seed=seed, device="cpu")
    agent.set_logger(configure(str(folder), []))
    agent.ctx, agent.last = SimpleNamespace(log_dir=folder, iteration_finished=lambda save: None), 2
    return agent


@pytest.fixture
def checkpoint(backend: ModuleType, tmp_path: Path) -> Path:
    """The checkpoint written after two iterations."""
    agent(backend, tmp_path, seed=1).learn(128, log_interval=10)
    return tmp_path / "model_2.pt"


def state(agent: Any, path: Path) -> Any:
    import torch

    agent.keep(str(path))
    return torch.load(path)


def test_a_checkpoint_restores_everything_in_it(backend: ModuleType, checkpoint: Path, tmp_path: Path) -> None:
    import torch

    fresh = agent(backend, tmp_path, seed=2)
    fresh.restore(checkpoint, trust=False)
    before, after = torch.load(checkpoint), state(fresh, tmp_path / "after.pt")
    assert before["num_timesteps"] == after["num_timesteps"] == 128
    assert torch.equal(before["random_state"]["cpu"], after["random_state"]["cpu"])
    for group, moments in before["normaliser"].items():
        assert {name: value.tolist() for name, value in moments.items()} == {
            name: value.tolist() for name, value in after["normaliser"][group].items()
        }
    assert all(torch.equal(value, after["policy"][name]) for name, value in before["policy"].items())
    assert repr(before["optimizer"]) == repr(after["optimizer"])


def test_weights_only_skips_optimiser_and_counter(backend: ModuleType, checkpoint: Path, tmp_path: Path) -> None:
    import torch

    fresh = agent(backend, tmp_path, seed=2)
    fresh.restore(checkpoint, trust=False, weights_only=True)
    after = state(fresh, tmp_path / "after.pt")
    assert after["num_timesteps"] == 0
    assert after["optimizer"]["state"] == {}
    policy = torch.load(checkpoint)["policy"]
    assert all(torch.equal(value, after["policy"][name]) for name, value in policy.items())


def test_an_agent_without_a_normaliser_refuses_a_checkpoint_with_one(
    backend: ModuleType, checkpoint: Path, tmp_path: Path
) -> None:
    plain = agent(backend, tmp_path, seed=2, normalises=False)
    with pytest.raises(rlnb.RlnbError, match="has normalize_input=True, but this agent has False"):
        plain.restore(checkpoint, trust=False)


def test_what_the_env_logs_in_each_step_is_in_the_mean_of_the_iteration(backend: ModuleType) -> None:
    import gymnasium
    import torch

    class Env(gymnasium.Env):  # type: ignore[type-arg]
        logs = iter([{"log": {"Kinds/height": torch.tensor(0.5)}}, {}])

        def step(self, action: Any) -> Any:
            return {}, 0.0, False, False, next(self.logs)

    rows: list[tuple[str, float]] = []
    logged = backend._Logged(Env())
    for _ in range(2):
        logged.step(None)
        logger = SimpleNamespace(record_mean=lambda name, value: rows.append((name, value)))
        assert logged.to_agent({"self": SimpleNamespace(logger=logger)}, {}) is True
    assert rows == [("Kinds/height", 0.5)]


@pytest.mark.parametrize("normalises", [False, True])
def test_the_weights_of_stock_are_loaded(backend: ModuleType, tmp_path: Path, normalises: bool) -> None:
    import torch

    trained = agent(backend, tmp_path, seed=1, normalises=normalises).learn(128, log_interval=10)
    trained.save(tmp_path / "model_128_steps.zip")
    if normalises:
        trained.get_vec_normalize_env().save(tmp_path / "model_128_steps_vecnormalize.pkl")
    fresh = agent(backend, tmp_path, seed=2, normalises=normalises)
    path = tmp_path / "model_128_steps.zip"
    if normalises:
        with pytest.raises(rlnb.RlnbError, match=r"a pickle, which runs code. If you know .* pass trust=True"):
            fresh.restore(path, trust=False, weights_only=True)
    fresh.restore(path, trust=normalises, weights_only=True)
    expected = trained.policy.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in fresh.policy.state_dict().items())
    if normalises:
        assert (fresh._moments()["obs"]["mean"] == trained._moments()["obs"]["mean"]).all()
        (tmp_path / "model_128_steps_vecnormalize.pkl").unlink()
        with pytest.raises(rlnb.RlnbError, match=r"model_128_steps_vecnormalize.pkl does not exist"):
            fresh.restore(path, trust=True, weights_only=True)


def test_a_file_that_is_no_checkpoint_of_stock_is_refused(backend: ModuleType, tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.pth", b"no weights")
    with pytest.raises(rlnb.RlnbError, match="is not a checkpoint of PPO as this agent is configured"):
        agent(backend, tmp_path, seed=1).restore(path, trust=True, weights_only=True)
