"""``task.agent()`` and the library that a training uses by default."""

from __future__ import annotations

import dataclasses

import pytest

import rlnb
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.tasks import agent

SYMMETRY = "rsl_rl_with_symmetry_cfg_entry_point"


def config(source: str, gamma: float, *, generic: bool = False) -> AgentCard:
    fields = {"algorithm.gamma": ConfigField(type="float", value=gamma)}
    return AgentCard(source=source, generic=generic, fields=fields)


CARD = TaskCard(
    task="Reach",
    agents={"rsl_rl": config("the usual one", 0.99), "sb3": AgentCard(error="no module")},
    named_agents={SYMMETRY: config("the one with symmetry", 0.98)},
    generic_agents={"rsl_rl": config("rlnb's own", 0.97, generic=True)},
    registered_agents=("rsl_rl_cfg_entry_point", SYMMETRY),
    default_library="rsl_rl",
)


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "card_of", lambda *_: CARD)


@pytest.mark.parametrize(
    ("name", "gamma", "source"),
    [
        (None, 0.99, "the usual one"),
        ("rsl_rl_cfg_entry_point", 0.99, "the usual one"),
        (SYMMETRY, 0.98, "the one with symmetry"),
        ("generic", 0.97, "rlnb's own"),
    ],
)
def test_the_config_and_its_source_are_shown(name: str | None, gamma: float, source: str) -> None:
    result = rlnb.task("Reach").agent(name=name)
    assert (result.values, result.source) == ({"algorithm.gamma": gamma}, source)
    assert str(result).startswith(
        f"Agent config of Reach for rsl_rl: {source}:\n  algorithm.gamma  {gamma}\nOther agent"
    )
    assert f"<td style='text-align:left'>{gamma}</td>" in result._repr_html_()


def test_a_named_config_has_the_requirements_of_the_library() -> None:
    card = dataclasses.replace(CARD, agents={"rsl_rl": AgentCard(missing=("rsl-rl-lib>=5 (not installed)",))})
    named = agent.agent_of(card, "rsl_rl", SYMMETRY)
    assert named is not None
    assert named.missing == ("rsl-rl-lib>=5 (not installed)",)


def test_the_other_configs_are_named() -> None:
    assert rlnb.task("Reach").agent().others == (SYMMETRY, "generic")
    assert rlnb.task("Reach").agent(name="generic").others == ("rsl_rl_cfg_entry_point", SYMMETRY)


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(
        rlnb.NotFoundError,
        match=f"Reach has for rsl_rl: generic, rsl_rl_cfg_entry_point, {SYMMETRY}.*Did you mean {SYMMETRY!r}",
    ):
        rlnb.task("Reach").agent(name="rsl_rl_with_symmetri_cfg_entry_point")
    with pytest.raises(rlnb.NotFoundError, match="No RL library named 'rslrl'"):
        rlnb.task("Reach").agent("rslrl")
    with pytest.raises(rlnb.RlnbError, match="echo is not a library for Isaac Lab, so Reach has no agent config"):
        rlnb.task("Reach").agent("echo")
    with pytest.raises(rlnb.RlnbError, match="does not load: no module"):
        rlnb.task("Reach").agent("sb3")


def test_without_a_library_the_default_one_of_the_task_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    card = dataclasses.replace(CARD, agents={**CARD.agents, "skrl": config("skrl's", 0.9)}, default_library="skrl")
    monkeypatch.setattr(agent, "card_of", lambda *_: card)
    assert rlnb.task("Reach").agent().source == "skrl's"
