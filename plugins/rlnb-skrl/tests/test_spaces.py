"""Spaces that the models of skrl's agent config cannot take or give, and a generic config for any of them."""

from typing import Any

import pytest
from rlnb_skrl import fitted

from rlnb.configs import tree
from rlnb.hooks import plugins
from rlnb.plugin import Space

VECTOR, FIRST, LAST = (Space(kind="box", shape=shape) for shape in ((4,), (3, 64, 64), (64, 64, 3)))
DISCRETE, MULTI = Space(kind="discrete"), Space(kind="multi_discrete")
DICT = Space(kind="dict", parts={"camera": LAST, "speed": VECTOR, "mode": DISCRETE})
TUPLE = Space(kind="tuple", parts={"0": VECTOR, "1": MULTI})
MATRIX = Space(kind="box", shape=(5, 4))


def problems(values: dict[str, Any], observations: dict[str, Space], actions: Space = VECTOR) -> list[Any]:
    return plugins.space_problems(plugins.library("skrl"), values, observations, actions)


def network(taken: str, *layers: object) -> dict[str, Any]:
    """Return an agent config whose value model has one container."""
    return {"models.value.network": [{"name": "net", "input": taken, "layers": list(layers)}]}


@pytest.mark.parametrize(
    ("values", "observations", "expected"),
    [
        (network("OBSERVATIONS", 32), {"policy": VECTOR}, None),
        (network("OBSERVATIONS", 32), {}, None),
        (network("OBSERVATIONS", 32), {"policy": FIRST}, "models.value.network: 'net' takes a vector, but"),
        (network("OBSERVATIONS", {"linear": 32}), {"policy": FIRST}, "takes a vector, but"),
        (network("OBSERVATIONS", {"conv2d": {"out_channels": 8}}, "flatten", 32), {"policy": FIRST}, None),
        (network("OBSERVATIONS", "flatten", 32), {"policy": FIRST}, None),
        (network("permute(OBSERVATIONS, (0, 3, 1, 2))", 32), {"policy": LAST}, None),
        (network("OBSERVATIONS", 32), {"policy": DICT}, "takes one tensor, but the observation 'policy' is a Dict."),
        (network('OBSERVATIONS["speed"]', 32), {"policy": DICT}, None),
        (network("STATES", 32), {"policy": VECTOR, "critic": VECTOR}, None),
        (network("STATES", 32), {}, None),
        (network("STATES", 32), {"policy": VECTOR}, "takes the env's state (STATES), but the task has none."),
        (network("concatenate([OBSERVATIONS, STATES])", 32), {"policy": VECTOR}, "takes the env's state (STATES)"),
    ],
)
def test_inputs(values: dict[str, Any], observations: dict[str, Space], expected: str | None) -> None:
    found = problems(values, observations)
    assert not found if expected is None else expected in found[0].what


@pytest.mark.parametrize(
    ("policy", "kind"),
    [("GaussianMixin", "box"), ("CategoricalMixin", "discrete"), ("MultiCategoricalMixin", "multi_discrete")],
)
@pytest.mark.parametrize("actions", [VECTOR, DISCRETE, MULTI])
def test_the_policy_has_to_give_the_actions(policy: str, kind: str, actions: Space) -> None:
    found = [one.what for one in problems({"models.policy.class": policy}, {"policy": VECTOR}, actions)]
    assert found == (
        [] if actions.kind == kind else [f"The actions are {actions}, but models.policy.class is {policy}."]
    )


@pytest.mark.parametrize("observation", [VECTOR, FIRST, LAST, DISCRETE, MULTI, DICT, TUPLE, MATRIX])
@pytest.mark.parametrize("actions", [VECTOR, DISCRETE, MULTI])
def test_the_generic_config_fits_any_spaces(observation: Space, actions: Space) -> None:
    agent_cfg = fitted.ppo(plugins.agent_config("rlnb_skrl:ppo.yaml"), {"policy": observation}, actions)
    values = {path: one.value for path, one in tree.fields(agent_cfg).items()}
    assert problems(values, {"policy": observation}, actions) == []
    assert bool(values["agent.observation_preprocessor"]) is (observation is VECTOR)
    assert values.get("models.policy.unnormalized_log_prob", False) is (actions is not VECTOR)


@pytest.mark.parametrize(
    ("space", "taken"),
    [
        (FIRST, "OBSERVATIONS"),
        (LAST, "permute(OBSERVATIONS, (0, 3, 1, 2))"),
    ],
)
def test_a_convolution_gets_the_channels_where_it_takes_them(space: Space, taken: str) -> None:
    models = fitted.ppo(plugins.agent_config("rlnb_skrl:ppo.yaml"), {"policy": space}, VECTOR)["models"]
    assert [models[name]["network"][0]["input"] for name in ("policy", "value")] == [taken, taken]


def test_the_parts_of_a_dict_are_joined() -> None:
    models = fitted.ppo(plugins.agent_config("rlnb_skrl:ppo.yaml"), {"policy": DICT}, VECTOR)["models"]
    features, last = models["policy"]["network"]
    assert features["input"] == "permute(OBSERVATIONS['camera'], (0, 3, 1, 2))"
    one_hot = "one_hot_encoding(OBSERVATION_SPACE['mode'], OBSERVATIONS['mode'])"
    assert last["input"] == f"concatenate([features_0, OBSERVATIONS['speed'], {one_hot}])"
