"""The checks of a training without a simulator, on the library echo and on variants of it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.training import lookup

Register = Callable[..., rlnb.Library]
NEEDS_A_PACKAGE = ("pluggy", "no-such-package>=3")


@pytest.fixture
def variant() -> Iterator[Register]:
    """A function that registers a variant of the library echo, and its task, until the test ends."""

    def register(**changes: Any) -> rlnb.Library:
        library = dataclasses.replace(plugins.library("echo"), name="variant", **changes)
        hook = staticmethod(rlnb.hookimpl(lambda: [library], specname="rlnb_libraries"))
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
    assert lookup.missing(library, str(python)) == ("no-such-package>=3 (not installed)",)
    python.write_text("#!/bin/sh\nexit 3\n")
    assert lookup.missing(library, str(python)) == (), "the worker reports an interpreter that does not work"
    assert lookup.missing(library, str(tmp_path / "elsewhere")) == (), "one of another machine"


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
