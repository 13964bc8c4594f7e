"""Intervals against published values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.records.evaluation import EvaluationRecord, evaluation_of, evaluations_of, say_rounding
from rlnb.records.layout import JobDir
from rlnb.results import Evaluation
from rlnb.storage.serial import from_json

EPISODES = 100
SUCCEEDED = 95
WILSON_95_OF_100 = (0.88825, 0.97846)
"""Wilson (1927) without continuity correction; e.g. statsmodels' proportion_confint(95, 100, method="wilson")."""
WILSON_0_OF_10 = (0.0, 0.27753)
T_975_3 = 3.182446
"""Student's t, 97.5 %, 3 degrees of freedom (any table)."""
T_975_9 = 2.262157
"""Student's t, 97.5 %, 9 degrees of freedom (any table)."""


def evaluation(**changes: Any) -> Evaluation:
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
    return Evaluation.from_record(from_json(EvaluationRecord, {**record, **changes}), folder)


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
    assert [row[:2] for row in rows[2:4]] == [("success rate", "0.950"), ("success source", "terminations.success")]
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


def test_one_episode_has_no_interval() -> None:
    result = evaluation(returns=[3.0], lengths=[7], successes=[True], timeouts=[True])
    assert result.return_interval == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert result.episodes == 1
    assert ("return", "3.000", "") in result.rows()
    assert ("length (steps)", "7.0", "") in result.rows()


def test_without_a_success_function_the_success_rate_is_not_defined() -> None:
    result = evaluation(successes=None)
    assert result.success_rate is None
    assert result.success_interval is None
    assert "success=not defined" in repr(result)
    assert ("success rate", "not defined for this task", "") in result.rows()


def test_an_evaluation_is_one_line_and_a_small_table() -> None:
    assert repr(evaluation()) == "Evaluation(100 episodes, mode=train, success=0.950, return=1.000)"
    html = evaluation()._repr_html_()
    assert "0.950" in html
    assert "0.888 to 0.978" in html


def test_the_mode_of_the_env_is_in_title_table_and_repr_and_older_records_are_of_the_training() -> None:
    older, played = evaluation(), evaluation(mode="play")
    assert (older.mode, older.title) == ("train", "logs/model_4.pt, 4 envs, mode train, seed 1000")
    assert (played.mode, played.title) == ("play", "logs/model_4.pt, 4 envs, mode play, seed 1000")
    assert ("mode", "play", "") in played.rows()
    assert "mode=play" in repr(played)
    without = evaluation(num_envs=0)
    assert (without.mode, without.title) == (None, "logs/model_4.pt, seed 1000"), "there is no env without a simulator"
    assert not any(name == "mode" for name, _, _ in without.rows())
    with pytest.raises(rlnb.RlnbError, match="mode='other' is not a value of type"):
        evaluation(mode="other")


def job_of(tmp_path: Path, **changes: Any) -> JobDir:
    """Return a job with an evaluation of two episodes."""
    record = {"returns": [1.0, 2.0], "lengths": [3, 4], "timeouts": [0, 1], "successes": None, "terms": {"a": [0, 1]}}
    record |= {"checkpoint": "logs/model_4.pt", "num_envs": 1, "seed": 1, **changes}
    job = JobDir(tmp_path / "run" / "jobs" / "1-evaluate")
    job.path.mkdir(parents=True)
    job.evaluation.write_text(json.dumps(record))
    return job


@pytest.mark.parametrize(
    "changes",
    [{"returns": []}, {"lengths": [3]}, {"successes": []}, {"terms": {"a": [1.0]}}, {"returns": "x"}, {"values": 3}],
    ids=lambda changes: str(changes),
)
def test_an_invalid_evaluation_says_what_is_wrong_and_spoils_no_other(
    changes: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, damaged = job_of(tmp_path / "good"), job_of(tmp_path / "damaged", **changes)
    invalid, valid = evaluations_of([damaged, good])
    assert (invalid.episodes, valid.episodes, valid.problem) == (0, 2, "")
    assert str(damaged.evaluation) in caplog.text
    assert invalid.problem.startswith(str(damaged.evaluation))
    assert invalid.rows() == [("problem", invalid.problem, "")]
    assert (invalid.title, repr(invalid)) == ("invalid evaluation", f"Evaluation(problem={invalid.problem!r})")
    assert "Invalid evaluation" in invalid._repr_html_()
    assert (invalid.success_rate, invalid.success_interval, invalid.video) == (None, None, None)
    assert math.isnan(invalid.mean_return)
    assert math.isnan(invalid.mean_length)


def test_what_is_wrong_with_an_evaluation_is_said_in_words(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"lengths": [3], "successes": [0.5, 2], "values": {"kl": []}, "timeouts": []}
    with pytest.raises(rlnb.RlnbError) as raised:
        evaluation_of(job_of(tmp_path, **changes))
    assert str(raised.value).endswith(
        "evaluation.json is not valid: lengths has 1 number for 2 episodes and successes has a number that is not from "
        "0 to 1 and the value 'kl' has no number. Move it away."
    )


def test_an_evaluation_may_have_values_without_episodes(tmp_path: Path) -> None:
    values = {"accuracy": [1.0] * 3 + [0.0], "perplexity": [12.5]}
    changes: dict[str, Any] = {"returns": [], "lengths": [], "timeouts": [], "terms": {}, "num_envs": 0}
    meanings = {"accuracy": "share of right answers, 0 to 1"}
    job = job_of(tmp_path, **changes, values=values, meanings=meanings)
    (result,) = evaluations_of([job])
    half = T_975_3 * 0.5 / 4**0.5  # the standard deviation of 1, 1, 1, 0 is 0.5
    interval = f"{0.75 - half:.3f} to {0.75 + half:.3f}"
    assert result.rows() == [
        ("accuracy: share of right answers, 0 to 1", "0.75", interval),
        ("perplexity", "12.5", ""),
    ]
    assert result.means == {"accuracy": 0.75, "perplexity": 12.5}
    assert repr(result) == "Evaluation(accuracy=0.75, perplexity=12.5)"
    assert result.title == "logs/model_4.pt, seed 1"


def test_an_evaluation_may_have_values_beside_episodes_without_lengths(tmp_path: Path) -> None:
    (result,) = evaluations_of([job_of(tmp_path, lengths=[], timeouts=[], values={"kl": [0.25]})])
    assert [name for name, _, _ in result.rows()] == ["episodes", "mode", "success rate", "return", "return: a", "kl"]
    assert repr(result) == "Evaluation(2 episodes, mode=train, success=not defined, return=1.500, kl=0.25)"


@pytest.mark.parametrize("field", ["returns", "successes", "lengths", "terms", "values"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_an_evaluation_with_a_number_that_is_not_finite_is_invalid(field: str, number: float, tmp_path: Path) -> None:
    bad: Any = [1.0, number]
    job = job_of(tmp_path, **{field: {"a": bad} if field in ("terms", "values") else bad})
    (result,) = evaluations_of([job])
    assert result.problem
    assert (result.episodes, result.success_rate) == (0, None)
    assert math.isnan(result.mean_return)


@pytest.mark.parametrize("large", [1e300, 10**300])
def test_large_returns_do_not_spoil_the_table(large: float, tmp_path: Path) -> None:
    (result,) = evaluations_of([job_of(tmp_path, returns=[large, -1.0])])
    assert not result.problem
    assert len(result.rows()) == 6
    (result,) = evaluations_of([job_of(tmp_path / "b", returns=[10**400, 1])])
    assert "returns has a number that is larger than a float can be" in result.problem


@pytest.mark.parametrize(
    "video", ["media/film.mp4", "../film.mp4", "/film.mp4", "media/link.mp4", "media", "media/\0film.mp4", "m" * 300]
)
def test_a_video_outside_of_the_run_is_not_shown(video: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, video=video.replace("/film.mp4", str(tmp_path / "film.mp4")) if video[0] == "/" else video)
    (tmp_path / "run" / "media").mkdir()
    (tmp_path / "film.mp4").touch()
    (tmp_path / "run" / "media" / "film.mp4").touch()
    (tmp_path / "run" / "media" / "link.mp4").symlink_to(tmp_path / "film.mp4")
    (evaluation,) = evaluations_of([job])
    assert (evaluation.video is not None) == (video == "media/film.mp4")


@pytest.mark.parametrize(
    ("episodes", "num_envs", "text"),
    [
        (200, 64, "64 envs run 4 whole episodes each: 256 episodes, not 200. For exactly 200, use num_envs=50."),
        (128, 64, ""),
        (100, 1, ""),
    ],
)
def test_an_evaluation_says_how_many_episodes_it_runs(
    caplog: pytest.LogCaptureFixture, episodes: int, num_envs: int, text: str
) -> None:
    say_rounding(episodes, num_envs)
    assert caplog.text.count("whole episodes each") == bool(text)
    assert text in caplog.text
