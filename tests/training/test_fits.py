"""Sizes and spaces of a task that an agent config does not fit, with the configs that do."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.contracts.libraries import Space
from rlnb.hooks import plugins
from rlnb.spec import Json, Manifest, Resources, Task
from rlnb.training.checks import problems_of_fit
from rlnb.training.lookup import Lookup

VECTOR, PICTURE = Space(kind="box", shape=(4,)), Space(kind="box", shape=(3, 64, 64))
MINIBATCHES = "algorithm.num_mini_batches"


def agent(values: dict[str, Json], **options: Any) -> AgentCard:
    return AgentCard(fields={path: ConfigField(type="any", value=value) for path, value in values.items()}, **options)


MLP = agent({"actor.class_name": "MLPModel"})
CNN = agent({"actor.class_name": "CNNModel"}, generic=True)
CONV = agent({"params.network.name": "actor_critic", "params.network.cnn.type": "conv2d"})
FLAT = agent({"params.network.name": "actor_critic"})
CATEGORICAL = agent({"models.policy.class": "CategoricalMixin"})


def fixes(
    card: TaskCard, *, chosen: AgentCard = MLP, ranks: int = 1, values: Any = None, overrides: Any = None
) -> list[str]:
    """Return the fixes for a training with RSL-RL."""
    lookup = Lookup(name="rsl_rl", library=plugins.library("rsl_rl"), card=card, agent=chosen)
    manifest = Manifest(
        run_id="r",
        created="",
        task=Task(id="Demo", overrides=overrides or {}),
        library="rsl_rl",
        agent=values or {},
        resources=Resources(nproc_per_node=ranks),
    )
    return [problem.fix for problem in problems_of_fit(manifest, lookup)]


@pytest.mark.parametrize(("ranks", "refused"), [(1, False), (2, True), (8, False)])
def test_sizes_are_checked_with_the_envs_of_a_rank(ranks: int, refused: bool) -> None:
    chosen = agent({MINIBATCHES: 4, "num_steps_per_env": 24})
    found = fixes(TaskCard(task="Demo", num_envs=6), chosen=chosen, ranks=ranks, values={"num_steps_per_env": 1})
    assert found == ([f"Use {MINIBATCHES}=3, or more envs."] if refused else [])  # 8 ranks have an error of their own


def card(observation: Space, actions: Space = VECTOR, **agents: AgentCard) -> TaskCard:
    return TaskCard(task="Demo", num_envs=6, observations={"policy": observation}, actions=actions, agents=agents)


def test_spaces_that_fit_are_no_problem() -> None:
    assert fixes(card(VECTOR)) == []
    assert fixes(TaskCard(task="Demo", num_envs=6)) == []  # several agents, whose spaces a card does not have


@pytest.mark.parametrize(
    ("agents", "fix"),
    [
        ({}, ""),
        ({"rl_games": FLAT}, ""),
        ({"rl_games": CONV}, "Use library='rl_games'."),
        ({"rl_games": CONV, "sb3": agent({"policy": "CnnPolicy"})}, "Use library='rl_games' or library='sb3'."),
        ({"rl_games": agent({}, error="ImportError")}, ""),
        ({"rl_games": agent({}, missing=("rl-games",))}, ""),
        ({"sb3": agent({"policy": "CnnPolicy"}, needs_choice=True)}, "Use library='sb3', agent='generic'."),
        ({"skrl": agent({"agent.class": "MAPPO"})}, ""),  # which another library trains
        (
            {"rl_games": CONV, "sb3": agent({}), "skrl": agent({}), "skrl_jax": agent({})},
            "Use library='rl_games' or library='sb3' or library='skrl'.",
        ),
    ],
)
def test_the_fix_names_the_libraries_whose_configs_fit(agents: dict[str, AgentCard], fix: str) -> None:
    assert fixes(card(PICTURE, **agents)) == [fix]


def test_the_fix_names_the_generic_config_first() -> None:
    plain = card(PICTURE, rl_games=CONV)
    with_generic = TaskCard(
        task="Demo",
        num_envs=6,
        observations=plain.observations,
        actions=plain.actions,
        agents=plain.agents,
        generic_agents={"rsl_rl": CNN},
    )
    assert fixes(with_generic) == ["Use agent='generic' or library='rl_games'."]
    broken = agent({"actor.class_name": "CNNModel"}, generic=True, error="ImportError")
    assert fixes(dataclasses.replace(with_generic, generic_agents={"rsl_rl": broken})) == ["Use library='rl_games'."]


def test_the_fix_of_the_library_comes_before_the_others() -> None:
    last = Space(kind="box", shape=(64, 64, 3))
    chosen = agent({"actor.class_name": "CNNModel", "actor.cnn_cfg.kernel_size": [5]})
    (fix,) = fixes(card(last, rl_games=CONV), chosen=chosen)
    assert fix.startswith("Return it from the env as image.permute(0, 3, 1, 2)")
    assert fix.endswith("and change its space. Or use library='rl_games'.")


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        ({}, True),
        ({"observation_space": 4}, False),
        ({"observation_space": [3, 32, 32]}, True),
        ({"observation_space": {"a": 2}}, False),  # which only Isaac Lab itself can tell
        ({"action_space": 2}, True),
        ({"state_space": [3, 64, 64]}, True),
    ],
)
def test_an_override_of_a_space_is_what_counts(overrides: dict[str, Json], refused: bool) -> None:
    assert bool(fixes(card(PICTURE), overrides=overrides)) is refused


def test_an_action_space_that_an_override_hides_is_not_judged() -> None:
    discrete = card(VECTOR, Space(kind="discrete"), skrl=CATEGORICAL)
    assert fixes(discrete) == ["Use library='skrl'."]
    assert fixes(discrete, overrides={"action_space": "{3}"}) == []
