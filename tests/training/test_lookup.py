"""The library, the task card and the agent config that a training looks up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import rlnb
from rlnb.configs.card import AgentCard, TaskCard
from rlnb.hooks import plugins
from rlnb.protocol import messages
from rlnb.spec import Task
from rlnb.training import lookup
from rlnb.training.arguments import TrainRequest
from rlnb.training.lookup import Lookup
from rlnb.training.plan import make_plan

OWN, SMALL, GENERIC = AgentCard(source="own"), AgentCard(source="small"), AgentCard(source="generic", generic=True)
CARD = TaskCard(
    task="Lift",
    agents={"rsl_rl": OWN, "skrl": GENERIC},
    named_agents={"rsl_rl_small_cfg_entry_point": SMALL},
    registered_agents=("rsl_rl_cfg_entry_point", "rsl_rl_small_cfg_entry_point"),
)


def look_up(task: str, name: str | None, agent_name: str | None = None) -> Lookup:
    return lookup.look_up(Task(id=task), name, rlnb.options.folders, None, None, agent_name=agent_name)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "card_of", lambda *_: CARD)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize(
    ("library", "agent_name", "agent"),
    [
        ("rsl_rl", None, OWN),
        ("rsl_rl", "rsl_rl_cfg_entry_point", OWN),
        ("rsl_rl", "rsl_rl_small_cfg_entry_point", SMALL),
        ("skrl", "generic", GENERIC),
        ("skrl", "skrl_amp_cfg_entry_point", None),
        ("sb3", None, None),
    ],
)
def test_the_agent_config_of_a_training_is_found(library: str, agent_name: str | None, agent: AgentCard | None) -> None:
    of_run = look_up("Lift", library, agent_name)
    assert of_run == Lookup(name=library, library=plugins.library(library), card=CARD, agent=agent)


def test_the_default_library_of_the_task_is_used_if_the_user_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "card_of", lambda *_: dataclasses.replace(CARD, default_library="skrl"))
    assert look_up("Lift", None).name == "skrl"
    assert look_up("Lift", "sb3").name == "sb3", "the user has chosen one"


@pytest.mark.usefixtures("card")
def test_a_library_that_is_not_installed_is_a_problem_beside_the_card() -> None:
    of_run = look_up("Lift", "rslrl")
    assert (of_run.name, of_run.library, of_run.card) == ("rslrl", None, CARD)
    assert "No RL library named 'rslrl'." in of_run.problems[0].what


def test_a_task_that_does_not_resolve_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> TaskCard:
        raise rlnb.RlnbError("It does not resolve.")

    monkeypatch.setattr(lookup, "card_of", fail)
    of_run = look_up("Lift", None)
    assert (of_run.name, of_run.card, of_run.problems) == ("rsl_rl", None, (rlnb.Problem(what="It does not resolve."),))
    (problem,) = look_up("Echo", "rsl_rl").problems
    assert problem.fix == "Without a simulator: library='echo'."


def test_a_library_without_a_simulator_needs_no_card() -> None:
    of_run = look_up("Echo", "echo")
    assert (of_run.library, of_run.card, of_run.problems) == (plugins.library("echo"), None, ())
    assert of_run.agent is not None
    assert of_run.agent.source == "the library's own, rlnb_echo.options:defaults"
    assert of_run.agent.fields["goal"].value == 1.0
    task, agent = look_up("Ecko", "echo", "generic").problems
    assert "No task named 'Ecko'" in task.what
    assert agent.what == "agent='generic' is not an agent config of echo, which trains without Isaac Lab."


@pytest.mark.usefixtures("card")
def test_the_manifest_has_the_name_and_the_source_of_the_agent_config() -> None:
    name = "rsl_rl_small_cfg_entry_point"
    manifest = make_plan(TrainRequest(task="Isaac-Lift", agent=[name, {"gamma": 0.9}])).manifest
    assert (manifest.library, manifest.agent_name, manifest.agent_source) == ("rsl_rl", name, "small")
    assert manifest.agent == {"gamma": 0.9}


def test_an_error_in_the_code_of_a_task_is_a_line_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> TaskCard:
        try:
            exec(compile("import math\nfrom . import mdp\n", str(tmp_path / "mine.py"), "exec"), {"__name__": "mine"})
        except ImportError as exc:
            exc.add_note("Import by the full name.")
            raise messages.error_of(messages.failure(1, exc)) from exc
        raise AssertionError

    (tmp_path / "mine.py").write_text("import math\nfrom . import mdp\n")
    monkeypatch.setattr(lookup, "card_of", fails)
    (problem,) = look_up("Mine", None).problems
    assert problem.what.endswith("ImportError: attempted relative import with no known parent package")
    assert "\n" not in problem.what
    assert problem.fix == "Import by the full name."
