"""Tests of rlnb.training.arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import AgentCard, TaskCard
from rlnb.launchers import LocalLauncher
from rlnb.spec import Manifest, Task
from rlnb.tasks import card_cache
from rlnb.training import checks
from rlnb.training.arguments import AlertArgument, TrainArguments, recorded_arguments, signature, split_alerts


def low(run: rlnb.Run) -> bool:
    return False


@pytest.mark.parametrize(
    ("alerts", "texts", "functions"),
    [
        ((), (), {}),
        (False, (), {}),
        (True, ("diagnosis", "failed"), {}),
        ("ended", ("ended",), {}),
        (low, ("function low",), {"function low": low}),
        (["ended", low], ("ended", "function low"), {"function low": low}),
        ([low, low], ("function low", "function low #2"), {"function low": low, "function low #2": low}),
        (5, ("5",), {}),
        ([5], ("5",), {}),
    ],
)
def test_texts_and_functions_are_separated(
    alerts: AlertArgument, texts: tuple[str, ...], functions: dict[str, object]
) -> None:
    assert split_alerts(alerts) == (texts, functions)


def test_all_wrong_rules_are_refused_at_once_and_nothing_is_written(root: Path) -> None:
    with pytest.raises(rlnb.CheckError) as raised:
        rlnb.train("Echo", library="echo", alerts=["rewrd < 5", "KL spike", "ended"], keep=0)
    assert len(raised.value.problems) == 3
    assert not list(root.glob("runs/*"))


# -- request ---------------------------------------------------------------------------------------------------------


PACKAGE = Path(rlnb.__file__).parent
NAMES = {name for name in inspect.signature(TrainArguments).parameters}
SO_MANY = 10
"""Number of arguments of ``rlnb.train`` from which a definition or a call counts as a copy of the list."""


def spelled_out(path: Path) -> Iterator[str]:
    """Yield the definitions and calls of a module that have many arguments of ``rlnb.train``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.FunctionDef):
            names = [arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]]
        elif isinstance(node, ast.ClassDef):
            fields = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
            names = [target.id for target in fields if isinstance(target, ast.Name)]
        elif isinstance(node, ast.Call):
            names = [keyword.arg or "" for keyword in node.keywords]
        if len(NAMES & {*names}) >= SO_MANY:
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_the_function_has_the_signature_of_its_arguments() -> None:
    assert inspect.signature(rlnb.train) == signature()


def test_the_arguments_are_listed_once() -> None:
    places = [place for path in PACKAGE.rglob("*.py") for place in spelled_out(path)]
    # A manifest has fields of the same names, and verify_sync has some of the arguments.
    own = {"spec.py", "training/arguments.py", "studies/verify.py"}
    assert {place.partition(":")[0] for place in places} <= own
    assert sum(place.startswith("training/arguments.py") for place in places) == 1


def test_every_argument_is_documented() -> None:
    docstring = inspect.getdoc(rlnb.train) or ""
    assert [name for name in NAMES if f"    {name}: " not in docstring] == []


def test_an_argument_is_recorded_where_it_says() -> None:
    manifest = Manifest(run_id="a", created="", task=Task(id="Echo", num_envs=8), library="echo", keep=3)
    recorded = recorded_arguments(manifest)
    assert (recorded["num_envs"], recorded["keep"], recorded["library"]) == (8, 3, "echo")
    assert "inputs" not in recorded, "the manifest has where they come from, and not what the call was given"


def test_an_unknown_argument_is_refused_with_the_closest_name() -> None:
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'max_iteration'. Did you mean 'max_iterations'"
    ) as raised:
        rlnb.train("Echo", max_iteration=3)  # type: ignore[call-arg]
    assert isinstance(raised.value, rlnb.RlnbError), "a notebook shows this line without the frames of rlnb"


CARD = TaskCard(
    task="Isaac-Cartpole-Direct",
    num_envs=64,
    workflow="direct",
    agents={"rsl_rl": AgentCard()},
    versions={"rlnb": rlnb.__version__},
)


class Refused(Exception):
    """Ends a training before its first process."""


def test_a_training_reads_its_card_once_and_checks_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"card": 0, "checks": 0}

    def look(*_: Any) -> Any:
        calls["card"] += 1
        return CARD

    def find(*arguments: Any) -> Any:
        calls["checks"] += 1
        return checks.find_problems(*arguments)

    def refuse(*_: object) -> None:
        raise Refused

    monkeypatch.setattr(card_cache, "cached_card", look)
    monkeypatch.setattr("rlnb.training.plan.find_problems", find)
    monkeypatch.setattr(LocalLauncher, "submit", refuse)
    with pytest.raises(Refused):
        rlnb.train("Isaac-Cartpole-Direct", device="cpu")
    assert calls == {"card": 1, "checks": 1}
