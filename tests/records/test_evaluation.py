"""Intervals against published values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.records.evaluation import EvaluationRecord
from rlnb.records.layout import JobDir
from rlnb.storage.serial import from_json

EPISODES = 100
SUCCEEDED = 95
WILSON_95_OF_100 = (0.88825, 0.97846)
"""Wilson (1927) without continuity correction; e.g. statsmodels' proportion_confint(95, 100, method="wilson")."""
WILSON_0_OF_10 = (0.0, 0.27753)
T_975_9 = 2.262157
"""Student's t, 97.5 %, 9 degrees of freedom (any table)."""


def evaluation(**changes: Any) -> rlnb.Evaluation:
    record = {
        "returns": [1.0] * EPISODES,
        "lengths": [10] * EPISODES,
        "timeouts": [False] * EPISODES,
        "successes": [index < SUCCEEDED for index in range(EPISODES)],
        "checkpoint": "logs/model_4.pt",
        "num_envs": 4,
        "seed": 1000,
    }
    folder = JobDir(Path("runs") / "none" / "jobs" / "1-evaluate")
    return rlnb.Evaluation.from_record(from_json(EvaluationRecord, {**record, **changes}), folder)


def test_success_has_wilsons_interval() -> None:
    assert evaluation().success_rate == 0.95
    assert evaluation().success_interval == pytest.approx(WILSON_95_OF_100, abs=1e-5)


def test_no_success_at_all_still_has_an_upper_bound() -> None:
    assert evaluation(successes=[False] * 10).success_interval == pytest.approx(WILSON_0_OF_10, abs=1e-5)


def test_shares_of_goals_count_as_shares_and_have_wilsons_interval_of_their_mean() -> None:
    shares = evaluation(successes=[0.9, 1.0] * (EPISODES // 2))
    assert shares.successes is not None
    assert shares.successes[:2] == (0.9, True)
    assert shares.success_rate == pytest.approx(0.95)
    assert shares.success_interval == pytest.approx(WILSON_95_OF_100, abs=1e-5)


def test_the_table_names_the_source_of_success() -> None:
    rows = evaluation(success_source="terminations.success").rows()
    assert [row[:2] for row in rows[1:3]] == [("success rate", "0.950"), ("success source", "terminations.success")]
    assert not any(name == "success source" for name, _, _ in evaluation().rows()), "a record without a source"


def test_a_rate_that_is_not_of_single_episodes_is_named() -> None:
    result = evaluation(successes=None, success_source="Metrics/success_rate")
    assert ("success rate", "unknown: Metrics/success_rate is not a rate of these episodes", "") in result.rows()


def test_the_mean_return_has_students_interval() -> None:
    result = evaluation(returns=list(range(1, 11)))
    half = T_975_9 * (55 / 6 / 10) ** 0.5  # variance of 1..10 is 55/6
    assert result.mean_return == 5.5
    assert result.return_interval == pytest.approx((5.5 - half, 5.5 + half), abs=1e-5)


def test_the_mean_length_has_students_interval() -> None:
    result = evaluation(lengths=list(range(1, 11)))
    assert result.mean_length == 5.5
    assert result.length_interval == evaluation(returns=list(range(1, 11))).return_interval


def test_the_interval_of_one_episode_is_its_value() -> None:
    result = evaluation(returns=[3.0], lengths=[7], successes=[True], timeouts=[True])
    assert result.return_interval == (3.0, 3.0)
    assert result.episodes == 1


def test_without_a_success_function_the_success_rate_is_not_defined() -> None:
    result = evaluation(successes=None)
    assert result.success_rate is None
    assert result.success_interval is None
    assert "success=not defined" in repr(result)
    assert ("success rate", "not defined for this task", "") in result.rows()


def test_an_evaluation_is_one_line_and_a_small_table() -> None:
    assert repr(evaluation()) == "Evaluation(100 episodes, success=0.950, return=1.000)"
    html = evaluation()._repr_html_()
    assert "0.950" in html
    assert "0.888 to 0.978" in html
