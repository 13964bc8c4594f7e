"""What is pure of training several agents."""

from __future__ import annotations

from typing import Any

import pytest
from rlnb_skrl import agent, plugin
from rlnb_skrl.part import Part, means_over

import rlnb
from rlnb import plugins
from rlnb.tasks.card import AgentCard, ConfigField, TaskCard

SEVERAL = ("skrl_ippo", "skrl_mappo")


def part(name: str) -> Part:
    return Part(name=name, policy=None, modules={}, scheduler=None)


def test_a_multi_agent_library_reads_its_own_agent_config_and_writes_what_skrl_writes() -> None:
    single = plugins.library("skrl")
    assert not single.multi_agent
    for name in SEVERAL:
        library = plugins.library(name)
        assert library.multi_agent
        assert library.agent_key == f"{name}_cfg_entry_point"
        assert (library.backend, library.metrics) == (single.backend, single.metrics)


def test_the_common_metric_is_the_mean_over_the_agents() -> None:
    agents = [part("cart"), part("pole")]
    data = {
        "Loss / Value loss (cart)": [1.0, 3.0],
        "Loss / Value loss (pole)": [6.0],
        "Learning / Learning rate (cart)": [0.1],  # of one of them only: no mean
        "Reward / Total reward (mean)": [5.0],
    }
    assert means_over(agents, data) == {"Loss / Value loss": [4.0]}


def test_one_agent_has_no_means_beside_its_own_values() -> None:
    assert means_over([part("")], {"Loss / Value loss": [1.0], "Reward / Total reward (mean)": [5.0]}) == {}


def test_a_part_names_its_tags_and_takes_its_share() -> None:
    assert part("cart").tag("Loss / Value loss") == "Loss / Value loss (cart)"
    assert part("").tag("Loss / Value loss") == "Loss / Value loss"
    assert part("cart").of({"cart": 1, "pole": 2}) == 1
    assert part("").of([1, 2]) == [1, 2]


def test_only_mappo_values_the_state_of_the_env() -> None:
    configs = {"PPO": agent.ppo(), "IPPO": agent.ippo(), "MAPPO": agent.mappo()}
    for name, config in configs.items():
        assert config["agent"]["class"] == name
        assert {layer["input"] for layer in config["models"]["policy"]["network"]} == {"OBSERVATIONS"}
        sees = {layer["input"] for layer in config["models"]["value"]["network"]}
        assert sees == {"STATES" if name == "MAPPO" else "OBSERVATIONS"}


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
def test_a_model_that_sees_the_state_needs_a_task_that_has_one(
    library: str,
    state_space: int,
    overrides: dict[str, Any],
    agent_values: dict[str, Any],
    refused: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configs = {"skrl_mappo": agent.mappo(), "skrl_ippo": agent.ippo(), "skrl": agent.ppo()}
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
    monkeypatch.setattr(rlnb, "task_card", lambda *_, **__: card)
    task = rlnb.task("Demo-Direct", overrides=overrides)
    manifest = rlnb.Manifest(run_id="r", created="", task=task, library=library, agent=agent_values)
    assert [problem.what for problem in plugin.rlnb_check(manifest)] == (
        ["models.value.network of skrl_mappo takes the state of the env, and Demo-Direct has none: state_space=0."]
        if refused
        else []
    )
