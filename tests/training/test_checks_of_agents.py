"""The checks of an agent config: its name, its origin, and the values to set in it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.configs.checks import check_agent
from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.plugin import Problem
from rlnb.spec import Manifest, Resources, Task
from rlnb.tasks.agent import agent_of
from rlnb.training import checks

OWN = AgentCard(source="the task's own")
GENERIC = AgentCard(source="its plugin's generic one", generic=True, needs_choice=True)
SYMMETRY = "rsl_rl_with_symmetry_cfg_entry_point"
FACTORY = TaskCard(
    task="Factory",
    agents={"rl_games": OWN, "rsl_rl": GENERIC},
    registered_agents=("rl_games_cfg_entry_point",),
)


def problems(card: TaskCard = FACTORY, library: str = "rsl_rl", **values: Any) -> list[Problem]:
    """Return the problems of the agent config of a run."""
    manifest = Manifest(run_id="r", created="", task=Task(id=card.task), library=library, **values)
    spec, agent = plugins.library(library), agent_of(card, library, manifest.agent_name)
    return [*checks._check_agent(manifest, spec, card, agent), *check_agent(manifest, spec, agent)]


def test_a_generic_config_is_refused_if_the_task_brings_configs_of_other_libraries_only() -> None:
    (problem,) = problems()
    assert problem.what.startswith("Factory brings no agent config for rsl_rl, only rl_games_cfg_entry_point.")
    assert problem.fix == "Use library='rl_games' or agent='generic'."
    assert not problems(agent_name="generic"), "the user has chosen it"
    assert not problems(library="rl_games")
    alone = dataclasses.replace(GENERIC, needs_choice=False)
    assert not problems(dataclasses.replace(FACTORY, agents={"rsl_rl": alone})), "a task without any agent config"


def test_a_config_that_another_library_trains_is_refused_with_that_library() -> None:
    def card(algorithm: str) -> TaskCard:
        config = dataclasses.replace(OWN, fields={"agent.class": ConfigField(type="str", value=algorithm)})
        return TaskCard(task="Duet", workflow="multi-agent", agents={"skrl": config, "skrl_mappo": config})

    (problem,) = problems(card("MAPPO"), library="skrl")
    assert (problem.what, problem.fix) == (
        "the task's own is a config that skrl does not train.",
        "Use library='skrl_mappo'.",
    )
    assert not problems(card("MAPPO"), library="skrl_mappo")
    assert not problems(card("PPO"), library="skrl")
    assert problems(card("MAPPO"))[0].fix == "Use library='skrl_mappo'.", "not one that is refused"


def test_the_fix_names_a_config_if_no_library_has_a_usual_one() -> None:
    card = dataclasses.replace(
        FACTORY,
        agents={"rsl_rl": GENERIC},
        registered_agents=("skrl_amp_cfg_entry_point",),
        named_agents={"skrl_amp": OWN},
    )
    assert problems(card)[0].fix.startswith("Use library='skrl', agent='skrl_amp_cfg_entry_point' or ")
    (problem,) = problems(dataclasses.replace(card, registered_agents=("robomimic_bc_cfg_entry_point",)))
    assert problem.fix == "Use agent='generic'."


def test_the_name_of_a_config_is_checked_against_task_and_library() -> None:
    card = dataclasses.replace(
        FACTORY,
        agents={"rsl_rl": OWN, "rl_games": OWN},
        registered_agents=("rl_games_cfg_entry_point", "rsl_rl_cfg_entry_point", SYMMETRY),
        named_agents={SYMMETRY: OWN},
    )
    assert not problems(card, agent_name=SYMMETRY)
    (problem,) = problems(card, agent_name="rsl_rl_with_symetry_cfg_entry_point")
    assert f"It has: rsl_rl_cfg_entry_point, {SYMMETRY}. Did you mean {SYMMETRY!r}?" in problem.what
    (problem,) = problems(card, "rl_games", agent_name=SYMMETRY)
    assert problem.what == f"agent={SYMMETRY!r} is not a config for rl_games, but for rsl_rl."
    assert problem.fix == f"Use library='rsl_rl', agent={SYMMETRY!r}."


def test_a_former_name_is_answered_with_the_present_one() -> None:
    fields = {"actor.hidden_dims": ConfigField(type="list", value=[32])}
    card = dataclasses.replace(FACTORY, agents={"rsl_rl": AgentCard(fields=fields)})
    (problem,) = problems(card, agent={"policy.actor_hidden_dims": [64]})
    assert problem.what == "agent config of rsl_rl: 'policy.actor_hidden_dims' is the name of an older version."
    assert problem.fix == "Use 'actor.hidden_dims'."
    (problem,) = problems(card, agent={"empirical_normalization": True})
    assert problem.fix == "Use 'actor.obs_normalization' and 'critic.obs_normalization'."
    old = AgentCard(fields={"policy.actor_hidden_dims": ConfigField(type="list", value=[32])})
    values = {"policy.actor_hidden_dims": [64]}
    assert not problems(dataclasses.replace(card, agents={"rsl_rl": old}), agent=values), "a task of an older Isaac Lab"


OVERRULED = {"device": "device", "logger": ""}
FIELDS = {
    "device": ConfigField(type="str", value="cuda:0"),
    "logger": ConfigField(type="str", value="tensorboard"),
}


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"+device": "cpu"}, "agent config: device is 'cpu', but rlnb.train has device='auto'."),
        ({"logger": "wandb"}, "agent config: logger is 'wandb', but rlnb sets it itself."),
    ],
)
def test_a_value_that_would_be_overruled_is_refused(values: dict[str, Any], what: str) -> None:
    manifest = Manifest(run_id="r", created="", task=Task(id="T"), library="x", resources=Resources(device="auto"))
    assert [
        problem.what for problem in checks._check_overruled(manifest, values, FIELDS, OVERRULED, "agent config")
    ] == [what]


def test_a_value_that_changes_nothing_is_accepted() -> None:
    manifest = Manifest(run_id="r", created="", task=Task(id="T"), library="x")
    values = {"logger": "tensorboard", "device": "auto", "seed": 42}
    assert not list(checks._check_overruled(manifest, values, FIELDS, OVERRULED, "agent config"))
    assert not list(checks._check_overruled(manifest, {"device": "cpu"}, {}, OVERRULED, "agent config")), (
        "no such value"
    )


def test_every_value_that_a_plugin_sets_belongs_to_an_argument_or_to_none() -> None:
    def arguments(library: Library) -> set[str]:
        return set(library.overruled.values())

    for library in plugins.libraries().values():
        assert arguments(library) <= {"seed", "max_iterations", "device", ""}, library.name
