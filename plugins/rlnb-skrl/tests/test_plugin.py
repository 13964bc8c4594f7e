"""The descriptions of skrl's libraries, their default agents, and the check for a missing state."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rlnb_skrl import plugin

import rlnb
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config
from rlnb.plugin import Manifest

SEVERAL = ("skrl_ippo", "skrl_mappo")


def test_a_multi_agent_library_has_its_own_agent_config_and_skrls_metrics() -> None:
    single = plugins.library("skrl")
    assert not single.multi_agent
    for name in SEVERAL:
        library = plugins.library(name)
        assert library.multi_agent
        assert library.agent_key == f"{name}_cfg_entry_point"
        assert (library.backend, library.metrics) == (single.backend, single.metrics)


def default(library: str) -> dict[str, Any]:
    config: dict[str, Any] = agent_config(plugins.library(library).default_agent)
    return config


def test_ippo_differs_from_ppo_only_in_its_class() -> None:
    ppo, ippo = default("skrl"), default("skrl_ippo")
    assert ippo["agent"].pop("class") == "IPPO"
    assert ppo["agent"].pop("class") == "PPO"
    assert ippo == ppo


def test_only_mappos_value_function_sees_the_state_of_the_env() -> None:
    ppo, mappo = default("skrl"), default("skrl_mappo")
    assert {layer["input"] for layer in mappo["models"]["policy"]["network"]} == {"OBSERVATIONS"}
    (layer,) = mappo["models"]["value"]["network"]
    assert layer["input"] == "STATES"
    layer["input"] = "OBSERVATIONS"
    ppo["models"]["separate"] = True
    ppo["agent"] |= {"class": "MAPPO", "state_preprocessor": "RunningStandardScaler", "state_preprocessor_kwargs": None}
    assert mappo == ppo


def test_the_default_agents_have_the_keys_rlnb_sets() -> None:
    for library in plugin.rlnb_libraries():
        config = default(library.name)
        off_policy = library in plugin.OFF_POLICY
        horizon = config["agent"]["experiment"] if off_policy else config["agent"]
        assert horizon[library.horizon_key] == (32 if off_policy else 24)
        assert library.overruled.items() >= {"seed": "seed", "trainer.timesteps": "max_iterations"}.items()
        assert (plugin.ITERATION in library.overruled) != off_policy
        assert config["seed"] == 42
        assert config["trainer"]["timesteps"] == (100 * 32 if off_policy else 300 * 24)


@pytest.mark.parametrize("algorithm", ["sac", "td3"])
def test_an_off_policy_library_has_its_own_agent_config_and_a_replay_buffer(algorithm: str) -> None:
    library = plugins.library(f"skrl_{algorithm}")
    assert library.agent_key == f"skrl_{algorithm}_cfg_entry_point"  # as Isaac Lab's training script reads it
    assert not library.distributed
    assert library.checkpoint_companions == ("{stem}.replay_buffer.npz",)
    assert {"critic_loss", "buffer_size"} <= library.metrics.keys()
    assert ("temperature" in library.metrics) == (algorithm == "sac")
    assert default(library.name)["agent"]["class"] == algorithm.upper()


def test_the_name_of_a_checkpoint_has_its_timestep() -> None:
    match = re.search(plugin.SKRL.checkpoint_pattern, "agent_192.pt")
    assert match is not None
    assert match[1] == "192"
    assert plugin.SKRL.checkpoint_iteration(192, 24) == 7
    assert not re.search(plugin.SKRL.checkpoint_pattern, "best_agent.pt")


@pytest.mark.parametrize(
    ("library", "state_space", "overrides", "agent_values", "refused"),
    [
        ("skrl_mappo", 0, {}, {}, True),
        ("skrl_mappo", -1, {}, {}, False),
        ("skrl_mappo", -1, {"state_space": 0}, {}, True),
        ("skrl_mappo", 0, {"state_space": -1}, {}, False),
        ("skrl_mappo", 0, {}, {"models.value.network": [{"input": "OBSERVATIONS"}]}, False),
        ("skrl_ippo", 0, {}, {}, False),
        ("skrl", 0, {}, {}, False),
    ],
)
def test_a_model_that_takes_the_state_needs_a_task_with_a_state(
    library: str,
    state_space: int,
    overrides: dict[str, Any],
    agent_values: dict[str, Any],
    refused: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configs = {name: default(name) for name in ("skrl_mappo", "skrl_ippo", "skrl")}
    agents = {
        name: AgentCard(
            fields={
                "models.value.network": ConfigField(type="list", value=[repr(config["models"]["value"]["network"][0])])
            }
        )
        for name, config in configs.items()
    }
    card = TaskCard(
        task="Demo-Direct", agents=agents, fields={"state_space": ConfigField(type="int", value=state_space)}
    )
    monkeypatch.setattr("rlnb.tasks.card_cache.card_of", lambda *_: card)
    monkeypatch.setattr("rlnb.tasks.agent.card_of", lambda *_: card)
    task = rlnb.task("Demo-Direct", overrides=overrides)
    manifest = Manifest(run_id="r", created="", task=task, library=library, agent=agent_values)
    assert [problem.what for problem in plugin.rlnb_check(manifest)] == (
        ["models.value.network of skrl_mappo takes the env's state, but Demo-Direct has none: state_space=0."]
        if refused
        else []
    )


@pytest.mark.parametrize(
    ("interval", "rollouts", "fix"),
    [(48, None, None), (50, None, 48), (5, None, 24), (50, 25, None), ("auto", None, None), (1000, None, None)],
)
def test_an_interval_of_checkpoints_that_is_not_whole_iterations_is_refused(
    interval: int | str, rollouts: int | None, fix: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"agent.rollouts": ConfigField(type="int", value=24), plugin.INTERVAL: ConfigField(type="int", value=1000)}
    agent = AgentCard(fields=fields)
    card = TaskCard(task="Demo", agents={"skrl": agent})
    monkeypatch.setattr("rlnb.tasks.card_cache.card_of", lambda *_: card)
    monkeypatch.setattr("rlnb.tasks.agent.card_of", lambda *_: card)
    values = {plugin.INTERVAL: interval, **({"agent.rollouts": rollouts} if rollouts else {})}
    manifest = Manifest(run_id="r", created="", task=rlnb.task("Demo"), library="skrl", agent=values)
    assert [problem.fix for problem in plugin.rlnb_check(manifest)] == (
        [f"Use {plugin.INTERVAL}={fix}."] if fix else []
    )


@pytest.mark.parametrize(
    ("values", "fixes"),
    [
        ({}, []),
        ({"agent.class": "sac"}, []),
        ({plugin.ITERATION: 8, plugin.INTERVAL: 24}, []),
        ({plugin.ITERATION: 8, plugin.INTERVAL: 25}, [f"Use {plugin.INTERVAL}=24."]),
        ({plugin.ITERATION: "auto"}, [f"Use {plugin.ITERATION}=32, or another number from 2."]),
        ({plugin.ITERATION: 1}, [f"Use {plugin.ITERATION}=32, or another number from 2."]),
        ({"agent.class": "TD3"}, ['Use library="skrl_td3".']),
        ({"agent.class": "DDPG"}, ["Use agent= with an agent config of the task for it."]),
    ],
)
def test_an_off_policy_agent_has_whole_iterations_and_the_networks_of_its_algorithm(
    values: dict[str, Any], fixes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = {plugin.CLASS: "SAC", plugin.ITERATION: 32, plugin.INTERVAL: "auto"}
    agent = AgentCard(fields={path: ConfigField(type="str", value=value) for path, value in defaults.items()})
    card = TaskCard(task="Demo", agents={"skrl_sac": agent})
    monkeypatch.setattr("rlnb.tasks.card_cache.card_of", lambda *_: card)
    monkeypatch.setattr("rlnb.tasks.agent.card_of", lambda *_: card)
    manifest = Manifest(run_id="r", created="", task=rlnb.task("Demo"), library="skrl_sac", agent=values)
    assert [problem.fix for problem in plugin.rlnb_check(manifest)] == fixes
