"""The errors that rlnb raises: what they say, and what they are."""

from __future__ import annotations

import rlnb
from rlnb.errors import did_you_mean, unknown


def test_the_closest_name_is_offered_and_nothing_when_none_is_close() -> None:
    assert did_you_mean("rsl-rl", ["rsl_rl", "skrl"]) == " Did you mean 'rsl_rl'?"
    assert did_you_mean("keras", ["rsl_rl", "skrl"]) == ""


def test_an_unknown_name_is_a_lookup_error_and_an_rlnb_error() -> None:
    error = unknown("camera", "wrst", ["wrist", "front"], has="The task has")
    assert str(error) == "No camera named 'wrst'. The task has: front, wrist. Did you mean 'wrist'?"
    assert isinstance(error, rlnb.RlnbError)
    assert isinstance(error, LookupError)
    assert str(unknown("run", "x", [])) == "No run named 'x'. Installed: none."


def test_a_check_error_shows_all_problems_with_their_fixes() -> None:
    problems = [rlnb.Problem(what="no disk.", fix="make room"), rlnb.Problem(what="no GPU.")]
    error = rlnb.CheckError("Echo with echo", problems)
    assert error.problems == tuple(problems)
    assert str(error) == (
        "Echo with echo: 2 problems, nothing was started.\n  - no disk.\n    fix: make room\n  - no GPU."
    )
