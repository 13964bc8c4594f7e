"""The backend's inputs to RL-Games: observations, and the settings of a rank."""

from __future__ import annotations

import importlib.util
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rlnb

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.fixture
def backend() -> ModuleType:
    from rlnb_rl_games import backend

    return backend


@pytest.fixture
def obs() -> Any:
    import torch

    return {"policy": torch.tensor([[1.0, 9.0]]), "critic": torch.tensor([[-9.0]])}


def params(**others: Any) -> Any:
    return {"algo": {"name": "a2c_continuous"}, "config": {"max_epochs": 300, "lr_schedule": "adaptive"}, **others}


def context(**values: Any) -> Any:
    return SimpleNamespace(**{"rank": 0, "world_size": 1, "seed": 7, "max_iterations": None, **values})


def test_the_policy_sees_its_own_group_clipped(backend: ModuleType, obs: Any) -> None:
    observations = backend._Observations({"params": params(env={"clip_observations": 5.0})})
    assert observations(obs).tolist() == [[1.0, 5.0]]


def test_the_config_decides_whether_observation_groups_are_concatenated(backend: ModuleType, obs: Any) -> None:
    groups = {"obs_groups": {"obs": ["policy", "critic"]}}
    assert backend._Observations({"params": params(env=groups)})(obs).tolist() == [[1.0, 9.0, -9.0]]
    apart = backend._Observations({"params": params(env={**groups, "concate_obs_groups": False})})(obs)
    assert {name: tensor.tolist() for name, tensor in apart.items()} == {"policy": [[1.0, 9.0]], "critic": [[-9.0]]}


@pytest.mark.parametrize(("model", "expected"), [("continuous_a2c_logstd", 0.9), ("continuous_a2c_tanh", 0.46211717)])
def test_actions_are_squashed_and_clipped_as_those_of_the_env_in_training(
    backend: ModuleType, obs: Any, model: str, expected: float
) -> None:
    import torch

    class Model(torch.nn.Module):
        def forward(self, inputs: Any) -> Any:
            return {"mus": torch.tensor([[0.5, -7.0]])}

    module = Model()
    player = SimpleNamespace(
        is_rnn=False,
        model=module,
        get_batch_size=lambda *_: None,
        reset=lambda: None,
        get_action=lambda inputs, is_deterministic: module(inputs)["mus"] * (1 if model.endswith("tanh") else 10),
    )
    agent_cfg = {"params": params(env={"clip_actions": 0.9}, model={"name": model})}
    actions = backend._Policy(player, agent_cfg, deterministic=True)(obs)
    assert actions.tolist() == [[pytest.approx(expected), pytest.approx(-0.9)]]


def test_only_rank_0_sets_the_learning_rate(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("torch.get_num_threads", lambda: 64)
    first, second, alone = params(), params(), params()
    backend._set_up_rank(first, context(world_size=2))
    backend._set_up_rank(second, context(world_size=2, rank=1, seed=8, max_iterations=5))
    backend._set_up_rank(alone, context())
    assert (first["config"]["lr_schedule"], second["config"]["lr_schedule"]) == ("adaptive", None)
    assert (first["config"]["max_epochs"], second["config"]["max_epochs"]) == (300, 5)
    assert (first["seed"], second["seed"]) == (7, 8)
    assert first["torch_threads"] == second["torch_threads"] == 0
    assert "torch_threads" not in alone


def test_a_training_that_is_bound_to_fewer_cores_has_fewer_threads(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    alone, own = params(), params(torch_threads=3)
    backend._set_up_rank(alone, context())
    backend._set_up_rank(own, context())
    assert (alone["torch_threads"], own["torch_threads"]) == (2, 3)


def test_an_unknown_algorithm_is_refused_with_the_known_names(backend: ModuleType) -> None:
    config = {"params": params(algo={"name": "dqn"})}
    names = r"params\.algo\.name='dqn' is not one of a2c_continuous, a2c_discrete, sac"
    with pytest.raises(rlnb.RlnbError, match=names):
        backend._prepare(None, config, "cpu")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({}, r"params\.env\.clip_actions"), ({"clip_actions": 1.0, "concate_obs_groups": False}, "single observation")],
)
def test_sac_is_refused_without_a_range_of_actions_or_with_several_observations(
    backend: ModuleType, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(rlnb.RlnbError, match=message):
        backend._prepare(None, {"params": params(algo={"name": "sac"}, env=settings)}, "cpu")


def settings() -> tuple[str, bool]:
    import torch

    return torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark


def test_only_a_training_on_a_gpu_keeps_the_settings_of_rl_games(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    torch.set_float32_matmul_precision("highest")  # another test may have left RL-Games' own
    before = settings()
    assert before == ("highest", False)
    backend._new_runner()
    assert settings() == before, "the warm simulator goes on with policies of other libraries"
    try:
        backend._new_runner(tensor_cores=True)
        assert settings() == ("high", True)
    finally:
        torch.set_float32_matmul_precision(before[0])
