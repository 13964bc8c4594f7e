"""Setting values in Isaac Lab's configs: dicts, as read from YAML, and classes."""

from __future__ import annotations

import copy
import json
from dataclasses import MISSING, dataclass, field
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import ConfigField
from rlnb.configs.tree import dicts, fields, openings, set_value, set_values, tree


@dataclass
class Algorithm:
    learning_rate: float = 1e-3
    extra: dict[str, Any] = field(default_factory=dict)


def test_an_existing_value_is_set_with_its_type() -> None:
    cfg = {"agent": {"learning_rate": 1e-3, "sizes": (64,)}, "algorithm": Algorithm()}
    set_value(cfg, "agent.learning_rate", 1)
    set_value(cfg, "agent.sizes", [32, 32])
    set_value(cfg, "algorithm.learning_rate", 2)
    assert cfg == {"agent": {"learning_rate": 1.0, "sizes": (32, 32)}, "algorithm": Algorithm(2.0)}


def test_a_tree_has_the_values_of_a_config_as_json() -> None:
    cfg = {"agent": {"sizes": (64, 32), "name": None, "act": object}, "algorithm": Algorithm(extra={"gamma": 0.9})}
    nested = {"agent": {"sizes": [64, 32], "name": None}, "algorithm": {"learning_rate": 1e-3, "extra": {"gamma": 0.9}}}
    assert json.loads(json.dumps(tree(cfg))) == nested


def test_a_list_of_groups_keeps_their_values() -> None:
    network = [{"name": "net", "layers": [64, {"linear": 8}], "act": object}]
    field_of = fields({"network": network})["network"]
    assert field_of.type == "list"
    assert field_of.value == [{"name": "net", "layers": [64, {"linear": 8}], "act": repr(object)}]


@dataclass
class Distillation:
    loss: Any = field(default_factory=lambda: MISSING)
    algorithm: Algorithm = field(default_factory=Algorithm)


@dataclass
class Runner:
    rnd: Distillation | None = None
    groups: dict[str, list[str]] = field(default_factory=lambda: MISSING)  # type: ignore[arg-type, return-value]
    seed: int | None = None
    algorithm: Algorithm = field(default_factory=Algorithm)


def test_values_without_a_default_may_be_groups_as_their_annotations_say() -> None:
    cfg = copy.deepcopy({"runner": Runner(), "kwargs": None})  # as Isaac Lab does, which copies MISSING too
    assert dict(openings(cfg)) == {
        "runner.rnd": {
            "loss": ConfigField(type="any", required=True),
            "algorithm.learning_rate": ConfigField(type="float", value=1e-3),
        },
        "runner.groups": {},
        "kwargs": {},
    }


def test_a_path_through_a_value_without_a_default_makes_the_group() -> None:
    cfg: dict[str, Any] = {"runner": Runner(), "kwargs": None}
    values = {
        "runner.rnd.algorithm.learning_rate": 2,
        "runner.rnd.loss": "mse",
        "runner.groups.actor": ["policy"],
        "runner.groups.critic": ["policy", "state"],
        "kwargs.size": 4,
        "kwargs.of.more": 5,
    }
    set_values(cfg, values)
    groups = {"actor": ["policy"], "critic": ["policy", "state"]}
    rnd = Distillation("mse", Algorithm(2.0))
    assert cfg == {"runner": Runner(rnd, groups), "kwargs": {"size": 4, "of": {"more": 5}}}
    for path in ("runner.rnd.los", "runner.seed.a", "runner.algorithm.rate"):
        with pytest.raises(rlnb.RlnbError, match="No config value"):
            set_values({"runner": Runner()}, {path: 1})


def test_a_value_that_does_not_exist_is_refused() -> None:
    with pytest.raises(rlnb.RlnbError, match="'rate' is not one of learning_rate"):
        set_value({"agent": {"learning_rate": 1e-3}}, "agent.rate", 1)


def test_a_plus_adds_to_dicts_only() -> None:
    cfg: dict[str, Any] = {"agent": {"learning_rate": 1e-3}, "algorithm": Algorithm()}
    assert sorted(dicts(cfg)) == ["", "agent", "algorithm.extra"], "the paths that a card lists"
    set_value(cfg, "+agent.kl.threshold", 0.01)
    set_value(cfg, "+normalize_input", True)
    set_value(cfg, "+agent.learning_rate", 1)
    set_value(cfg, "+algorithm.extra.gamma", 0.9)
    assert cfg == {
        "agent": {"learning_rate": 1.0, "kl": {"threshold": 0.01}},
        "normalize_input": True,
        "algorithm": Algorithm(extra={"gamma": 0.9}),
    }
    with pytest.raises(rlnb.RlnbError, match="'gamma' is not one of extra, learning_rate"):
        set_value(cfg, "+algorithm.gamma", 0.9)


@dataclass
class Reward:
    weight: Any = 1
    func: str = "mdp:alive"
    params: dict[str, Any] = field(default_factory=lambda: {"limits": (0.5, [MISSING]), "steps": 3})
    target: float | None = None


def test_fields_have_a_type_and_a_value_that_json_can_hold() -> None:
    rows = fields({"alive": Reward()})
    assert rows["alive.weight"] == ConfigField(type="float", value=1), "Isaac Lab accepts any number as a weight"
    assert rows["alive.params.steps"] == ConfigField(type="int", value=3)
    assert rows["alive.func"] == ConfigField(type="str", value="mdp:alive")
    assert rows["alive.target"] == ConfigField(type="any", value=None)
    assert rows["alive.params.limits"].type == "list"
    assert json.dumps(rows["alive.params.limits"].value).startswith('[0.5, ["<dataclasses._MISSING')
