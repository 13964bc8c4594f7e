"""The setup of a skrl training: its length, its folder, its checkpoints."""

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
]


@pytest.fixture
def backend() -> ModuleType:
    from rlnb_skrl import backend

    return backend


def config(**agent: Any) -> dict[str, Any]:
    experiment = {"checkpoint_interval": "auto"}
    return {"agent": {"class": "PPO", "experiment": experiment, **agent}, "trainer": {"timesteps": 1000}}


def context(**values: Any) -> Any:
    return SimpleNamespace(**{"log_dir": Path("/runs/a/logs"), "max_iterations": None, "world_size": 1, **values})


def test_iterations_become_timesteps_of_the_trainer(backend: ModuleType) -> None:
    agent_cfg = config(rollouts=16)
    assert backend._set_up_training(agent_cfg, context(max_iterations=50)) == (16, 800)
    assert agent_cfg["trainer"]["timesteps"] == 800
    assert agent_cfg["agent"]["experiment"] == {
        "directory": "/runs/a",
        "experiment_name": "logs",
        "write_interval": 16,
        "checkpoint_interval": 80,  # a tenth of the timesteps, in whole iterations
    }


def test_an_agent_without_rollouts_has_iterations_too(backend: ModuleType) -> None:
    assert backend._set_up_training(config(), context()) == (backend.HORIZON, 1000)


@pytest.mark.parametrize(("interval", "horizon"), [(8, 8), ("auto", 32)])
def test_an_iteration_of_an_off_policy_agent_is_its_write_interval(
    backend: ModuleType, interval: int | str, horizon: int
) -> None:
    agent_cfg = config(**{"class": "SAC"})
    agent_cfg["agent"]["experiment"]["write_interval"] = interval
    assert backend._set_up_training(agent_cfg, context(max_iterations=10)) == (horizon, 10 * horizon)
    assert agent_cfg["agent"]["experiment"]["write_interval"] == horizon


@pytest.mark.parametrize(
    ("interval", "timesteps", "whole"), [("auto", 1600, 160), (100, 1600, 96), (1, 1600, 16), (0, 1600, 0)]
)
def test_checkpoints_fall_on_the_ends_of_iterations(
    backend: ModuleType, interval: int | str, timesteps: int, whole: int
) -> None:
    assert backend._whole_iterations(interval, timesteps, 16) == whole


def test_an_early_stop_is_refused_only_on_several_ranks(backend: ModuleType) -> None:
    agent_cfg = config(kl_threshold=0.1)
    backend._refuse_several_ranks(agent_cfg, context())
    backend._refuse_several_ranks(config(kl_threshold=0.0), context(world_size=2))
    with pytest.raises(rlnb.RlnbError, match=r'Use agent=\{"agent\.kl_threshold": 0\.0\} for several ranks'):
        backend._refuse_several_ranks(agent_cfg, context(world_size=2))


def test_an_off_policy_algorithm_is_refused_on_several_ranks_and_in_jax(backend: ModuleType) -> None:
    agent_cfg = config(**{"class": "TD3"})
    backend._refuse_several_ranks(agent_cfg, context())
    with pytest.raises(rlnb.RlnbError, match="TD3 trains in one process"):
        backend._refuse_several_ranks(agent_cfg, context(world_size=2))

    class WithoutReplay(backend.Skrl):  # type: ignore[name-defined, misc]  # as the backend of JAX
        has_replay = False

    env = SimpleNamespace(unwrapped=SimpleNamespace())
    with pytest.raises(rlnb.RlnbError, match='library="skrl_td3"'):
        WithoutReplay()._runner(env, agent_cfg, "cpu", 1)


@pytest.mark.parametrize(("algorithm", "agents"), [("PPO", ["cart", "pole"]), ("MAPPO", None)])
def test_an_algorithm_for_the_wrong_number_of_agents_is_refused(
    backend: ModuleType, algorithm: str, agents: list[str] | None
) -> None:
    unwrapped = SimpleNamespace(possible_agents=agents) if agents else SimpleNamespace()
    kind = "several agents" if agents else "one agent"
    with pytest.raises(rlnb.RlnbError, match=f"'{algorithm}' is not an algorithm for {kind}"):
        backend.Skrl()._runner(SimpleNamespace(unwrapped=unwrapped), config(**{"class": algorithm}), "cpu", 1)
