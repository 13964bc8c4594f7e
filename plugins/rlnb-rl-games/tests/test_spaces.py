"""Spaces that RL-Games, or the network of its agent config, cannot train."""

from typing import Any

import pytest
from rlnb_rl_games import fitted

from rlnb.configs import tree
from rlnb.hooks import plugins
from rlnb.plugin import Space

VECTOR, PICTURE = Space(kind="box", shape=(4,)), Space(kind="box", shape=(3, 64, 64))
LAST = Space(kind="box", shape=(64, 64, 3))
USUAL = {"params.network.name": "actor_critic"}


def problems(values: dict[str, Any], observations: dict[str, Space], actions: Space = VECTOR) -> list[str]:
    return [one.what for one in plugins.space_problems(plugins.library("rl_games"), values, observations, actions)]


@pytest.mark.parametrize(
    ("values", "observations", "expected"),
    [
        (USUAL, {"policy": VECTOR}, None),
        (USUAL, {}, None),
        (USUAL, {"policy": PICTURE}, "the network has no CNN: params.network.cnn is missing."),
        ({**USUAL, "params.network.cnn.type": "conv2d"}, {"policy": PICTURE}, None),
        ({"params.network.name": "my_network"}, {"policy": PICTURE}, None),
        (USUAL, {"policy": Space(kind="multi_discrete")}, None),
        (USUAL, {"policy": Space(kind="discrete")}, "'policy' is a Discrete, but RL-Games takes vectors and pictures."),
        (USUAL, {"policy": Space(kind="dict")}, "'policy' is a Dict, but RL-Games takes vectors and pictures."),
        (USUAL, {"policy": VECTOR, "camera": PICTURE}, None),
        (
            {**USUAL, "params.env.obs_groups.obs": ["camera"]},
            {"policy": VECTOR, "camera": PICTURE},
            "'camera' is a pic",
        ),
    ],
)
def test_observations(values: dict[str, Any], observations: dict[str, Space], expected: str | None) -> None:
    found = problems(values, observations)
    assert not found if expected is None else expected in found[0]


def test_actions_that_are_indexes_are_refused() -> None:
    (what,) = problems(USUAL, {"policy": VECTOR}, Space(kind="multi_discrete"))
    assert what.startswith("The actions are a MultiDiscrete")


@pytest.mark.parametrize(("picture", "permutes"), [(PICTURE, False), (LAST, True), (VECTOR, None)])
def test_the_generic_config_has_a_cnn_for_pictures(picture: Space, permutes: bool | None) -> None:
    agent_cfg = fitted.ppo(plugins.agent_config("rlnb_rl_games:ppo.yaml"), {"policy": picture}, VECTOR)
    cnn = agent_cfg["params"]["network"].get("cnn", {})
    assert cnn.get("permute_input") is permutes
    assert agent_cfg["params"]["config"]["normalize_input"] is (permutes is None)
    values = {path: field.value for path, field in tree.fields(agent_cfg).items()}
    assert problems(values, {"policy": picture}) == []


def test_the_generic_config_does_not_scale_actions_to_the_clip_of_the_env() -> None:
    params = plugins.agent_config("rlnb_rl_games:ppo.yaml")["params"]
    assert params["env"]["clip_actions"] == 1.0 or params["config"]["clip_actions"] is False
