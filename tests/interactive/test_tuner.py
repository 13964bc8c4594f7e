"""The tuner's own logic: its requests, its state and its panel. A stand-in answers for the simulator."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import ConfigField, Kind, TaskCard
from rlnb.interactive import tuner as tuning
from rlnb.interactive.tuner import bars
from rlnb.protocol import requests
from rlnb.spec import Json

HOSTILE = "<script>alert(1)</script>"


def field(value: Json, kind: Kind = "float") -> ConfigField:
    return ConfigField(value=value, type=kind)


CARD = TaskCard(
    task="T",
    workflow="manager-based",
    fields={
        "sim.dt": field(0.01),
        "rewards.alive.weight": field(1.0),
        "rewards.alive.func": field("mdp:alive", "str"),
        "rewards.pole.weight": field(-2.0),
        "rewards.pole.params.target": field(0.5),
        "rewards.pole.params.joints": field(3, "int"),
    },
)


class Rote:
    """A stand-in that records each request and returns each term's weight as its value in each env."""

    def __init__(self) -> None:
        self.opens: list[requests.Open] = []
        self.refuses = False

    def __call__(self, request: Any, python: object, asset_root: object, launcher: object, *, warm: bool) -> Any:
        assert warm, "whatever rlnb.options.warm says"
        assert not isinstance(request, requests.Close), "no warm simulator is left that could close the env"
        if isinstance(request, requests.Open):
            self.opens.append(request)
            if self.refuses:
                raise rlnb.WorkerError("ValueError: no such joint")
            self.overrides = request.task.overrides
            return requests.Change(how="rewards swapped", seconds={"resolve": 0.1, "change": 0.005})
        weights = {"alive": self.overrides.get("rewards.alive.weight", 1.0), HOSTILE: -2.0}
        return requests.Rewards(terms={name: (w, 2 * w) for name, w in weights.items()}, reward=(0.0, 1.0))


@pytest.fixture
def rote(root: Any, monkeypatch: pytest.MonkeyPatch) -> Rote:
    simulator = Rote()
    monkeypatch.setattr(tuning.pool, "request", simulator)
    monkeypatch.setattr(tuning, "task_card", lambda *_, **__: CARD)
    return simulator


def test_closing_after_the_simulator_ended_starts_no_other_one(rote: Rote) -> None:
    rlnb.tune("T", num_envs=2).close()


def test_changes_are_sent_to_the_simulator_and_returned_as_overrides(rote: Rote) -> None:
    tuner = rlnb.tune(rlnb.task("T", num_envs=512, overrides={"sim.dt": 0.02}), num_envs=2)
    tuner.set("rewards.alive.weight", 3.0).set("rewards.pole.params.target", 0.0)
    overrides = rote.opens[-1].task.overrides
    assert overrides == {"sim.dt": 0.02, "rewards.alive.weight": 3.0, "rewards.pole.params.target": 0.0}
    assert tuner.overrides == {"rewards.alive.weight": 3.0, "rewards.pole.params.target": 0.0}
    assert tuner.task.overrides == overrides
    assert tuner.task.num_envs == 512, "the number of envs of the training"
    assert {request.task.num_envs for request in rote.opens} == {2}
    assert tuner.values["alive"] == [3.0, 6.0]


def test_only_numbers_of_rewards_are_tunable_with_their_current_values(rote: Rote) -> None:
    tuner = rlnb.tune("T").set("rewards.pole.weight", -5)
    assert tuner.tunable == {
        "rewards.alive.weight": 1.0,
        "rewards.pole.weight": -5,
        "rewards.pole.params.target": 0.5,
        "rewards.pole.params.joints": 3,
    }


def test_a_refused_change_is_not_kept(rote: Rote) -> None:
    tuner = rlnb.tune("T")
    rote.refuses = True
    with pytest.raises(rlnb.WorkerError, match="no such joint"):
        tuner.set("rewards.alive.weight", 3.0)
    with pytest.raises(rlnb.CheckError, match=r"Did you mean 'rewards.alive.weight'"):
        tuner.set("rewards.alive.wieght", 3.0)
    assert tuner.overrides == {}


def test_a_slider_of_the_panel_sets_its_value_and_an_error_is_shown(rote: Rote) -> None:
    tuner = rlnb.tune("T")
    head, strips, *sliders = tuner.panel().children
    assert [slider.description for slider in sliders] == [
        "alive.weight",
        "pole.weight",
        "pole.params.target",
        "pole.params.joints",
    ]
    sliders[3].value = 4
    assert tuner.overrides == {"rewards.pole.params.joints": 4}
    assert isinstance(tuner.overrides["rewards.pole.params.joints"], int)
    tuner = rlnb.tune("T")
    head, strips, *sliders = tuner.panel().children
    before = strips.value
    sliders[0].value = 2.0
    assert tuner.overrides == {"rewards.alive.weight": 2.0}
    assert strips.value != before
    rote.refuses = True
    sliders[1].value = 1.0
    assert "no such joint" in head.children[-1].value
    assert tuner.overrides == {"rewards.alive.weight": 2.0}


def test_hostile_text_is_escaped(rote: Rote) -> None:
    tuner = rlnb.tune("T")
    for html in (tuner._repr_html_(), bars(tuner.values)):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
    assert repr(tuner).startswith("Tuner('T', rewards swapped in 0.105 s)")


def test_a_direct_task_is_refused(rote: Rote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "task_card", lambda *_, **__: dataclasses.replace(CARD, workflow="direct"))
    with pytest.raises(rlnb.RlnbError, match="not manager-based"):
        rlnb.tune("T")
