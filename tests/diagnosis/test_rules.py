"""Tests of rlnb.diagnosis.rules, with the runs of the echo library."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.diagnosis import rules
from rlnb.diagnosis.rules import DIAGNOSIS, ENDED, FAILED, Rule
from rlnb.diagnosis.symptoms import NAMES, Symptom
from rlnb.results import Diagnosis

BAD = Symptom(name="KL spikes", metric="kl", what="It was 3.", fix="Lower the learning rate.")


@pytest.mark.parametrize(
    "text",
    [
        DIAGNOSIS,
        ENDED,
        FAILED,
        *NAMES,
        "reward < 5",
        " 0 < reward <= 5 and iteration > 100",
        "not reward > -1e3 or (fps + 1) * 2 / 3 < 10 - reward",
        "'Episode_Reward/alive' > 3",
        "function low",
    ],
)
def test_symptoms_and_conditions_are_rules(text: str) -> None:
    assert [*Rule(text).problems()] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "neither a symptom nor a condition"),
        ("reward", "neither"),
        ("5", "neither"),
        ("kl spikes", "Did you mean 'KL spikes'?"),
        ("reward <", "neither"),
        ("reward = 5", "neither"),
        ("rewrd < 5", "'rewrd' is not a metric. Did you mean 'reward'?"),
        ("__import__('os').system('true') > 0", "neither"),
        ("reward.real > 0", "neither"),
        ("[reward for _ in ()] > 0", "neither"),
        ("reward ** 9999 > 0", "neither"),
        ("reward is 5", "neither"),
        ("-reward", "neither"),
        ("reward and 5", "neither"),
        ("not reward", "neither"),
        ("reward < True", "neither"),
        ("(lambda: 1)() > 0", "neither"),
        ("(" * 300 + "reward" + ")" * 300 + " > 0", "neither"),
    ],
)
def test_anything_else_is_refused_with_a_fix(text: str, expected: str) -> None:
    (problem,) = Rule(text).problems()
    assert expected in problem.what
    assert problem.fix


@pytest.fixture
def run(root: Path) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=20).wait(60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reward > -1e9", True),
        ("0.9 < reward < 1.0", True),
        ("reward < -1e9", False),
        ("iteration >= 19 and reward > -1e9", True),
        ("iteration > 19 and reward > -1e9", False),
        ("iteration > 19 or reward > -1e9", True),
        ("not iteration > 19", True),
        ("-iteration == -19", True),
        ("iteration + 1 != 20", False),
        ("2 * iteration - 8 <= 30", True),
        ("18 < iteration < 20", True),
        ("20 > iteration > 30", False),
        ("1 / (iteration - 19) > 0", False),
        ("'no such tag' > 0", False),
        ("'no such tag' > 0 or reward > -1e9", True),
        ("reward > -1e9 or 'no such tag' > 0", True),
        ("not 'no such tag' > 0", False),
        ("reward > -1e9 and 'no such tag' > 0", False),
    ],
)
def test_a_condition_is_judged_by_the_newest_values(run: rlnb.Run, text: str, expected: bool) -> None:
    finding = Rule(text).finding(run)
    assert (finding is not None) == expected
    if finding:
        assert finding.startswith(f"{text}: ")
        assert ("iteration is 19" in finding) == ("iteration" in text)


def test_a_symptom_is_found_by_its_name_or_as_any(run: rlnb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Rule(DIAGNOSIS).finding(run) is None
    diagnosis = Diagnosis(run=run.id, points=20, symptoms=(BAD,))
    monkeypatch.setattr(rules, "diagnose", lambda run: diagnosis)
    for text in (DIAGNOSIS, "KL spikes"):
        assert Rule(text).finding(run) == "KL spikes: It was 3. Lower the learning rate."
    assert Rule("memory grows").finding(run) is None


@pytest.mark.parametrize(
    ("text", "outcome", "error", "expected"),
    [
        (ENDED, "completed", "", "completed"),
        (ENDED, "failed", "out of memory", "failed: out of memory"),
        (ENDED, "cancelled", "cancelled", "cancelled"),
        (FAILED, "failed", "out of memory", "failed: out of memory"),
        (FAILED, "timeout", "", "timeout"),
        (FAILED, "completed", "", None),
        (FAILED, "cancelled", "cancelled", None),
        (DIAGNOSIS, "failed", "", None),
    ],
)
def test_the_end_of_a_training_is_found(text: str, outcome: str, error: str, expected: str | None) -> None:
    assert Rule(text).finding_at_end(outcome, error) == expected


def test_values_of_an_earlier_job_do_not_count(run: rlnb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.started is not None
    later = dataclasses.replace(run.started, time_s=time.time() + 60.0)
    monkeypatch.setattr(type(run), "started", later)
    for text in ("reward > -1e9", "iteration >= 0", "iteration >= 0 or reward > -1e9"):
        assert Rule(text).finding(run) is None


@pytest.mark.parametrize("text", [ENDED, FAILED, "function low"])
def test_a_training_that_goes_on_has_not_ended(run: rlnb.Run, text: str) -> None:
    assert Rule(text).finding(run) is None
