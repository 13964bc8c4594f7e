"""The library, the task card and the agent config that a training looks up."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import AgentCard, TaskCard
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.plugin import Library, Problem, hookimpl
from rlnb.protocol import messages
from rlnb.spec import Task
from rlnb.training import lookup
from rlnb.training.arguments import TrainArguments
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
    assert (of_run.name, of_run.card, of_run.problems) == (
        "rsl_rl",
        None,
        (Problem(what="It does not resolve."),),
    )
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
    manifest = make_plan(TrainArguments(task="Isaac-Lift", agent=[name, {"gamma": 0.9}])).manifest
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


# -- no simulator ----------------------------------------------------------------------------------------------------


Register = Callable[..., Library]
NEEDS_A_PACKAGE = ("pluggy", "no-such-package>=3")


@pytest.fixture
def variant() -> Iterator[Register]:
    """A function that registers a variant of the library echo, and its task, until the test ends."""

    def register(**changes: Any) -> Library:
        library = dataclasses.replace(plugins.library("echo"), name="variant", **changes)
        hook = staticmethod(hookimpl(lambda: [library], specname="rlnb_libraries"))
        rlnb.register(type("Variant", (), {"rlnb_libraries": hook}), "variant")
        return library

    yield register
    if manager().has_plugin("variant"):
        manager().unregister(name="variant")


def problems(library: str = "variant", **arguments: Any) -> list[tuple[str, str]]:
    """Return what the checks of a training find, with each fix."""
    return [(problem.what, problem.fix) for problem in rlnb.check("Echo", library=library, **arguments)]


def test_a_training_without_a_simulator_has_no_problems() -> None:
    assert problems("echo", agent={"goal": 2, "+note": "x"}, device="cpu", nproc_per_node=2) == []


def test_a_misspelt_agent_value_is_refused_with_the_closest_name_and_a_wrong_type_with_the_right_one() -> None:
    assert problems("echo", agent={"gaol": 2.0, "fork": 3}) == [
        ("agent config of echo: no config value 'gaol'. Did you mean 'goal'?", "Correct the path, or add it: '+gaol'."),
        ("agent config of echo: fork takes bool (now False), not 3.", "Pass a bool."),
    ]


def test_a_library_without_an_agent_config_takes_any_value(variant: Register) -> None:
    variant(default_agent="")
    assert problems(agent={"gaol": 2.0}) == []


def test_a_missing_requirement_is_named_with_its_installation(variant: Register) -> None:
    variant(requires=NEEDS_A_PACKAGE)
    what = f"variant needs no-such-package>=3 (not installed) in the worker's interpreter {sys.executable}."
    assert problems() == [(what, f"{sys.executable} -m pip install pluggy 'no-such-package>=3'")]


def test_another_interpreter_names_its_own_missing_requirements(variant: Register, tmp_path: Path) -> None:
    library = variant(requires=NEEDS_A_PACKAGE)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "[INFO] a line of a wrapper"\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert lookup.unmet_requirements(library, str(python)) == ("no-such-package>=3 (not installed)",)
    python.write_text("#!/bin/sh\nexit 3\n")
    assert lookup.unmet_requirements(library, str(python)) == (), "the worker reports an interpreter that does not work"
    assert lookup.unmet_requirements(library, str(tmp_path / "elsewhere")) == (), "one of another machine"


def test_an_agent_config_that_does_not_load_is_a_problem(variant: Register) -> None:
    variant(default_agent="rlnb_echo.options:default")
    ((what, _),) = problems()
    assert what.startswith("the agent config of variant (the library's own, rlnb_echo.options:default) does not load: ")


def test_several_ranks_of_a_library_for_one_process_are_refused(variant: Register) -> None:
    variant(distributed=False)
    assert problems(nproc_per_node=2) == [("variant trains in one process, not in 2.", "nproc_per_node=1")]


def test_an_agent_value_that_contradicts_an_argument_is_refused(variant: Register) -> None:
    variant(overruled={"goal": "seed"})
    ((what, _),) = problems(agent={"goal": 7}, seed=3)
    assert what == "agent config of variant: goal is 7, but rlnb.train has seed=3."


def test_a_number_of_iterations_in_the_agent_config_does_not_contradict_that_of_the_run(variant: Register) -> None:
    variant(default_agent=f"{__name__}:counting")
    ((what, _),) = problems(agent={"max_iterations": 5}, max_iterations=10)
    assert what == "agent config of variant: max_iterations is 5, but rlnb.train has max_iterations=10."
    assert problems(agent={"max_iterations": 5}) == []


def counting() -> dict[str, Any]:
    return {"max_iterations": 300}


def test_settings_of_envs_are_refused_at_once() -> None:
    task = rlnb.task("Echo", overrides={"sim.dt": 0.5}, physics="newton_mjwarp", renderer="rtx", presets=["fast"])
    ((what, fix),) = [
        (problem.what, problem.fix)
        for problem in rlnb.check(task, library="echo", num_envs=7, film_every=2, deterministic=True)
    ]
    assert what == (
        "echo trains without a simulator, so it has no use for num_envs=7 and overrides={'sim.dt': 0.5} and "
        "presets=['fast'] and physics='newton_mjwarp' and renderer='rtx' and film_every=2 and deterministic=True."
    )
    assert fix == "Leave them out. agent={...} sets values of echo."
    ((what, fix),) = problems("echo", num_envs=7)
    assert (what[-29:], fix[:13]) == ("so it has no use for num_envs=7."[-29:], "Leave it out.")
