"""Options that take ``path=value``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from rlnb.cli import arguments
from rlnb.cli.arguments import texts
from rlnb.errors import CheckError

Invoke = Callable[..., Result]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.005", 0.005),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('"5"', "5"),
        ("newton", "newton"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("", ""),
        ("a=b", "a=b"),
        (".005", 0.005),
        ("-1.e-3", -0.001),
        ("007", "007"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_value_is_json_or_else_text(text: str, expected: Any) -> None:
    assert arguments.value(text) == expected
    assert arguments.values(set=[f"path={text}"]) == [{"path": expected}]


def test_all_texts_that_assign_nothing_are_refused_at_once(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--set", "sim.dt", "--set", "a=1", "--agent", "=3")
    assert result.exit_code == 2
    assert "--set 'sim.dt'" in result.stderr
    assert "--agent '=3'" in result.stderr
    assert "'a=1'" not in result.stderr


def test_each_option_has_its_own_values_and_a_missing_option_has_none() -> None:
    overrides, agent, settings = arguments.values(set=["sim.dt = 1", "a=x=y"], agent=None, launcher_set=["gpus=[1]"])
    assert (overrides, agent, settings) == ({"sim.dt": 1, "a": "x=y"}, {}, {"gpus": [1]})


def test_the_example_of_an_option_with_a_dash_is_found() -> None:
    with pytest.raises(CheckError, match=r"--launcher-set 'gpu' is not path=value(.|\n)*--launcher-set partition=gpu"):
        arguments.values(launcher_set=["gpu"])


def test_texts_of_an_option_stay_texts() -> None:
    assert texts("input", ["teacher=20261126", "demos=a=b.npz"]) == {"teacher": "20261126", "demos": "a=b.npz"}
    with pytest.raises(CheckError, match="--input 'teacher' is not name=value") as raised:
        texts("input", ["teacher"])
    assert raised.value.problems[0].fix == "--input teacher=RUN"
