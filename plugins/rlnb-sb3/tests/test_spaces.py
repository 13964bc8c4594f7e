"""Spaces that Stable-Baselines3, or the policy of its agent config, cannot train, and its CNN for pictures."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from rlnb_sb3 import fitted
from rlnb_sb3.pictures import Pictures, with_extractor

from rlnb.configs import tree
from rlnb.hooks import plugins
from rlnb.plugin import Space

VECTOR, PICTURE = Space(kind="box", shape=(4,)), Space(kind="box", shape=(3, 64, 64))
DICT = Space(kind="dict", parts={"a": VECTOR})


def problems(values: dict[str, Any], observations: dict[str, Space], actions: Space = VECTOR) -> list[Any]:
    return plugins.space_problems(plugins.library("sb3"), values, observations, actions)


@pytest.mark.parametrize(
    ("space", "refused"),
    [
        (VECTOR, False),
        (PICTURE, False),  # MlpPolicy flattens it
        (Space(kind="discrete"), False),
        (DICT, True),
        (Space(kind="tuple"), True),
    ],
)
def test_observations(space: Space, refused: bool) -> None:
    found = problems({"policy": "MlpPolicy"}, {"policy": space})
    assert [one.what for one in found] == (
        [f"The observation 'policy' is {space}, but rlnb-sb3 takes one tensor."] if refused else []
    )


@pytest.mark.parametrize(
    ("kind", "refused"),
    [("box", False), ("multi_discrete", False), ("discrete", True), ("tuple", True), ("dict", True)],
)
def test_actions(kind: Any, refused: bool) -> None:
    assert bool(problems({"policy": "MlpPolicy"}, {"policy": VECTOR}, Space(kind=kind))) is refused


@pytest.mark.parametrize(
    ("space", "policy", "normalises"),
    [
        (VECTOR, "MlpPolicy", True),
        (PICTURE, "CnnPolicy", False),
        (Space(kind="box", shape=(64, 64, 3)), "CnnPolicy", False),
        (Space(kind="box", shape=(3, 35, 64)), "MlpPolicy", False),
        (Space(kind="discrete"), "MlpPolicy", False),
    ],
)
def test_the_generic_config_has_the_policy_for_the_observation(space: Space, policy: str, normalises: bool) -> None:
    agent_cfg = fitted.ppo(plugins.agent_config("rlnb_sb3:ppo.yaml"), {"policy": space}, VECTOR)
    assert (agent_cfg["policy"], agent_cfg["normalize_input"]) == (policy, normalises)
    assert not problems({path: one.value for path, one in tree.fields(agent_cfg).items()}, {"policy": space})


def test_pictures_with_channels_last_have_the_features_of_those_with_channels_first() -> None:
    image = torch.rand(2, 3, 36, 40)
    first, last = (Pictures(spaces.Box(-np.inf, np.inf, shape)) for shape in ((3, 36, 40), (36, 40, 3)))
    last.load_state_dict(first.state_dict())
    assert torch.equal(first(image), last(image.permute(0, 2, 3, 1)))


@pytest.mark.parametrize(
    ("policy", "space", "given", "expected"),
    [
        ("CnnPolicy", spaces.Box(-np.inf, np.inf, (36, 36, 3)), {}, Pictures),
        ("CnnPolicy", spaces.Box(-np.inf, np.inf, (36, 36, 3)), {"features_extractor_class": 1}, 1),
        ("CnnPolicy", spaces.Box(0, 255, (36, 36, 3), np.uint8), {}, None),  # which Stable-Baselines3 knows
        ("MlpPolicy", spaces.Box(-np.inf, np.inf, (36, 36, 3)), {}, None),
        ("MultiInputPolicy", spaces.Dict({"a": spaces.Box(-1, 1, (36, 36, 3))}), {}, None),
    ],
)
def test_only_pictures_that_their_cnn_does_not_know_get_ours(
    policy: str, space: Any, given: dict[str, Any], expected: object
) -> None:
    options = with_extractor(policy, space, {"n_steps": 8, "policy_kwargs": given})
    assert options["policy_kwargs"].get("features_extractor_class") is expected
    assert options["n_steps"] == 8
