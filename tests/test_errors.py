"""The errors of rlnb: their texts, their classes, and the check of whole numbers."""

from __future__ import annotations

from typing import Any

import pytest

import rlnb
from rlnb.errors import Problem, Problems, did_you_mean, unknown, whole_number


def test_the_closest_name_is_suggested_if_any_is_close() -> None:
    assert did_you_mean("rsl-rl", ["rsl_rl", "skrl"]) == " Did you mean 'rsl_rl'?"
    assert did_you_mean("keras", ["rsl_rl", "skrl"]) == ""


def test_an_unknown_name_is_a_lookup_error_and_an_rlnb_error() -> None:
    error = unknown("camera", "wrst", ["wrist", "front"], has="The task has")
    assert str(error) == "No camera named 'wrst'. The task has: front, wrist. Did you mean 'wrist'?"
    assert isinstance(error, rlnb.RlnbError)
    assert isinstance(error, LookupError)
    assert str(unknown("run", "x", [])) == "No run named 'x'. Installed: none."


def test_a_check_error_shows_all_problems_with_their_fixes() -> None:
    problems = [rlnb.plugin.Problem(what="no disk.", fix="make room"), rlnb.plugin.Problem(what="no GPU.")]
    error = rlnb.CheckError("Echo with echo", problems)
    assert error.problems == tuple(problems)
    assert str(error) == (
        "Echo with echo: 2 problems, nothing was started.\n  - no disk.\n    fix: make room\n  - no GPU."
    )


def pretty(value: object) -> str:
    return str(pytest.importorskip("IPython.lib.pretty").pretty(value))


def test_a_cell_shows_a_list_of_problems_as_text() -> None:
    assert pretty(Problems()) == "No problems were found."
    some = Problems([Problem(what="no such value 'a'", fix="Use 'b'."), Problem(what="always 0", note=True)])
    assert pretty(some) == "  - no such value 'a'\n    fix: Use 'b'.\n  - note: always 0"
    found = rlnb.check("Echo", library="echo")
    assert found == []
    assert pretty(found) == pretty(Problems())


@pytest.mark.parametrize("value", [0, -1, 2.0, "8", True, None])
def test_a_value_that_is_not_a_positive_whole_number_is_one_problem(value: Any) -> None:
    what = f"num_envs={value!r} is not a positive whole number."
    assert whole_number("num_envs", value, example=64) == [Problem(what=what, fix="num_envs=64")]


def test_a_problem_names_the_smallest_valid_number() -> None:
    assert whole_number("steps", -1, least=0) == [Problem(what="steps=-1 is not a whole number of at least 0.")]
    assert whole_number("steps", 0, least=0) == whole_number("steps", 1) == []


def test_a_cell_shows_the_message_of_an_error_once(capsys: pytest.CaptureFixture[str]) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    for kind in ("RlnbError", "WorkerError", "RunError"):
        shell.run_cell(f"import rlnb\nraise rlnb.{kind}('the message of this error')", store_history=False)
        streams = capsys.readouterr()
        assert f"{streams.out}{streams.err}".count("the message of this error") == 1, kind
