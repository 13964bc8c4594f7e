"""The names that people guess for verbs of runs."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.run.guesses import GuidedRun, GuidedRuns


@pytest.mark.parametrize("kind", [rlnb.Run, rlnb.Runs])
def test_each_guess_names_a_call_that_exists(kind: Any) -> None:
    places = {"run": rlnb.Run, "runs": rlnb.Runs, "rlnb": rlnb}
    guesses = GuidedRun._instead if kind is rlnb.Run else GuidedRuns._instead
    for name, call in guesses.items():
        assert not hasattr(kind, name), f"{name} exists, so it needs no hint"
        named = re.findall(r"(?<!')\b(run|runs|rlnb)[.\[]([a-z_]*)", call)
        assert named, call
        for place, verb in named:
            assert not verb or hasattr(places[place], verb) or verb == "name", call


def test_a_missing_name_says_what_to_use(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    for obj, name, said in [
        (run, "rename", r"^Run has no 'rename'\. Use run\.name = 'a name'\.$"),
        (run, "evaluat", r"^Run has no 'evaluat'\. Did you mean 'evaluate'\?$"),
        (rlnb.runs(), "to_csv", r"^Runs has no 'to_csv'\. Use runs\.table\(\)\.to_csv\('runs\.csv'\)\.$"),
        (rlnb.runs(), "zzz", r"^Runs has no 'zzz'\.$"),
    ]:
        with pytest.raises(AttributeError, match=said):
            getattr(obj, name)
    assert not hasattr(run, "_repr_png_")
    assert copy.copy(run).id == run.id


def test_the_error_of_a_property_is_not_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object) -> None:
        raise AttributeError("the cause")

    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    monkeypatch.setattr(rlnb.Run, "state", property(fails))
    with pytest.raises(AttributeError, match=r"^the cause$"):
        _ = run.state
