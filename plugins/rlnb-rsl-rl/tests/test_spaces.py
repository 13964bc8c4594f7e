"""Spaces that RSL-RL, or a model of its agent config, cannot train."""

from typing import Any

import pytest
from rlnb_rsl_rl import agent

from rlnb.configs import tree
from rlnb.hooks import plugins
from rlnb.plugin import Space

VECTOR, PICTURE = Space(kind="box", shape=(4,)), Space(kind="box", shape=(3, 64, 64))
LAST, BOX = Space(kind="box", shape=(64, 64, 3)), Space(kind="box")
MLP = {"actor.class_name": "MLPModel", "critic.class_name": "MLPModel"}
CNN = {"actor.class_name": "CNNModel", "critic.class_name": "CNNModel", "actor.cnn_cfg.kernel_size": [5, 3]}


def problems(values: dict[str, Any], observations: dict[str, Space], actions: Space = VECTOR) -> list[str]:
    return [one.what for one in plugins.space_problems(plugins.library("rsl_rl"), values, observations, actions)]


@pytest.mark.parametrize(
    ("values", "observations"),
    [
        (MLP, {"policy": VECTOR}),
        (MLP, {"policy": BOX}),
        (MLP, {}),
        (MLP, {"policy": VECTOR, "camera": PICTURE}),
        (CNN, {"policy": PICTURE}),
        (CNN, {"policy": BOX}),
        (
            {**CNN, "obs_groups.actor": ["policy", "only_in_the_env"], "critic.class_name": "MLPModel"},
            {"policy": VECTOR},
        ),
        ({**CNN, "obs_groups.actor": ["policy", "camera"]}, {"policy": VECTOR, "camera": PICTURE, "critic": PICTURE}),
        ({**CNN, "critic.class_name": "MLPModel"}, {"policy": PICTURE, "critic": VECTOR}),
        ({**CNN, "actor.cnn_cfg.padding": "zeros"}, {"policy": Space(kind="box", shape=(3, 4, 4))}),
        ({"actor.class_name": "my.models:Own", "critic.class_name": "my.models:Own"}, {"policy": PICTURE}),
    ],
)
def test_spaces_that_fit_are_no_problem(values: dict[str, Any], observations: dict[str, Space]) -> None:
    assert problems(values, observations) == []


@pytest.mark.parametrize(
    ("values", "observations", "expected"),
    [
        (MLP, {"policy": PICTURE}, "the actor is an MLPModel, which takes vectors."),
        ({**MLP, "actor.class_name": "rsl_rl.models.rnn_model:RNNModel"}, {"policy": PICTURE}, "actor is an RNNModel"),
        (MLP, {"policy": VECTOR, "critic": PICTURE}, "the critic is an MLPModel"),
        ({**MLP, "obs_groups.actor": ["camera"]}, {"policy": VECTOR, "camera": PICTURE}, "'camera' is a picture"),
        (MLP, {"policy": Space(kind="box", shape=(5, 4))}, "a Box of the shape (5, 4), but RSL-RL takes vectors"),
        (MLP, {"policy": Space(kind="dict")}, "'policy' is a Dict, but RSL-RL takes a Box for each group."),
        (MLP, {"policy": Space(kind="tuple")}, "'policy' is a Tuple"),
        (MLP, {"policy": Space(kind="discrete")}, "'policy' is a Discrete"),
        (CNN, {"policy": VECTOR}, "The actor is a CNNModel, but its observations have no picture: policy."),
        (CNN, {"policy": LAST}, "RSL-RL's pictures have the shape (channels, height, width)."),
        (CNN, {"policy": Space(kind="box", shape=(3, 4, 4))}, "smaller than the first kernel of the actor's CNN."),
    ],
)
def test_spaces_that_do_not_fit_are_named(
    values: dict[str, Any], observations: dict[str, Space], expected: str
) -> None:
    assert expected in problems(values, observations)[0]


def test_a_picture_that_is_too_small_in_the_right_order_is_not_said_to_be_in_another() -> None:
    (what,) = problems(CNN, {"policy": Space(kind="box", shape=(3, 4, 4))})
    assert "RSL-RL's pictures" not in what


def test_a_critic_that_is_as_the_actor_is_not_named_again() -> None:
    assert len(problems(MLP, {"policy": PICTURE})) == 1
    assert len(problems(MLP, {"policy": PICTURE, "critic": PICTURE})) == 2


def test_actions_that_are_indexes_are_refused() -> None:
    (what,) = problems(MLP, {"policy": VECTOR}, Space(kind="discrete"))
    assert what == "The actions are a Discrete, but RSL-RL has continuous actions only."


@pytest.mark.parametrize(
    ("observations", "actor", "critic"),
    [
        ({"policy": VECTOR}, "MLPModel", "MLPModel"),
        ({"policy": PICTURE}, "CNNModel", "CNNModel"),
        ({"policy": PICTURE, "critic": VECTOR}, "CNNModel", "MLPModel"),
        ({"policy": VECTOR, "critic": PICTURE}, "MLPModel", "CNNModel"),
        ({}, "MLPModel", "MLPModel"),
    ],
)
def test_the_generic_config_has_a_cnn_for_each_model_that_sees_pictures(
    observations: dict[str, Space], actor: str, critic: str
) -> None:
    fitted = agent.fitted(agent.ppo(), observations, VECTOR)
    assert (fitted.actor.class_name, fitted.critic.class_name) == (actor, critic)
    assert problems({path: field.value for path, field in tree.fields(fitted).items()}, observations) == []
