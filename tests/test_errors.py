"""The errors of rlnb, and problems that are found in many places."""

from __future__ import annotations

from typing import Any

import pytest

from rlnb.errors import Problem, whole_number


@pytest.mark.parametrize("value", [0, -1, 2.0, "8", True, None])
def test_a_value_that_is_no_positive_whole_number_is_one_problem(value: Any) -> None:
    what = f"num_envs={value!r} is not a positive whole number."
    assert whole_number("num_envs", value, example=64) == [Problem(what=what, fix="num_envs=64")]


def test_a_smaller_least_is_told_and_a_number_that_fits_is_no_problem() -> None:
    assert whole_number("steps", -1, least=0) == [Problem(what="steps=-1 is not a whole number from 0 on.")]
    assert whole_number("steps", 0, least=0) == whole_number("steps", 1) == []
