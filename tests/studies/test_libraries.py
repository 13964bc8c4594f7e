"""The trainings of a comparison of libraries, and its checks before any run starts."""

from __future__ import annotations

import dataclasses
import html
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.studies import compare_libraries, libraries
from rlnb.training import lookup


def field(value: int) -> ConfigField:
    return ConfigField(type="int", value=value)


CARD = TaskCard(
    task="Isaac-Cartpole-Direct",
    workflow="direct",
    num_envs=64,
    agents={
        "rsl_rl": AgentCard(fields={"num_steps_per_env": field(16)}),
        "skrl": AgentCard(fields={"agent.rollouts": field(32)}),
        "skrl_jax": AgentCard(fields={"agent.rollouts": field(32)}, missing=("jax (not installed)",)),
        "sb3": AgentCard(error="it does not load"),
        "rl_games": AgentCard(fields={"params.config.horizon_length": field(16)}, generic=True, needs_choice=True),
    },
    versions={"rlnb": rlnb.__version__},
)


@pytest.fixture
def requested(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Provide the list of requested trainings: (library, frames, seed). A fixed card replaces the simulator."""
    found: list[tuple[str, int, int]] = []

    class Evaluated:
        def wait(self, *, check: bool) -> Evaluated:
            assert check, "a cancelled run has no policy to compare"
            return self

        def evaluate(self, episodes: int, *, mode: str | None) -> Any:
            return SimpleNamespace(mode=mode, episodes=episodes)

    def train(task: Any, *, library: str, max_frames: int, seed: int, **_: Any) -> Evaluated:
        found.append((library, max_frames, seed))
        return Evaluated()

    monkeypatch.setattr(libraries, "task_card", lambda *_, **__: CARD)
    monkeypatch.setattr(lookup, "card_of", lambda *_: CARD)
    monkeypatch.setattr(libraries.train, "train", train)
    return found


def test_only_installed_libraries_are_compared_with_equal_frames(requested: list[tuple[str, int, int]]) -> None:
    compare_libraries("Isaac-Cartpole-Direct", seeds=2, max_frames=64 * 320)
    assert requested == [(library, 64 * 320, seed) for library in ("rsl_rl", "skrl") for seed in (0, 1)]


def test_all_problems_are_reported_before_the_first_run_starts(requested: list[tuple[str, int, int]]) -> None:
    with pytest.raises(rlnb.CheckError, match=r"skrl_jax needs jax") as raised:
        compare_libraries("Isaac-Cartpole-Direct", ["rsl_rl", "skrl_jax", "none"], max_frames=64 * 320)
    assert "none" in str(raised.value)
    assert requested == []


def test_each_problem_is_reported_once(requested: list[tuple[str, int, int]]) -> None:
    wrong: dict[str, Any] = {"seeds": 0, "max_frames": -5, "mode": "plya", "device": "gpu"}
    with pytest.raises(rlnb.CheckError) as raised:
        compare_libraries("Isaac-Cartpole-Direct", ["rsl_rl", "skrl"], **wrong)
    whats = [problem.what for problem in raised.value.problems]
    mode = "No mode named 'plya'. Modes: play, train. Did you mean 'play'?"
    assert [what.split("=")[0] for what in whats] == ["seeds", mode, "max_frames", "device"]
    agent = {"skrl": {"agent.rollouts": "many"}}
    with pytest.raises(rlnb.CheckError, match="the agent config of skrl has no 'rollouts', so its frames cannot be"):
        compare_libraries("Isaac-Cartpole-Direct", ["rsl_rl", "skrl"], max_frames=64 * 320, agent=agent)
    with pytest.raises(rlnb.CheckError, match="agent has values for 'sb3', which is not one of: "):
        compare_libraries("Isaac-Cartpole-Direct", ["skrl"], max_frames=64 * 320, agent={"sb3": {"n_steps": 8}})
    assert requested == []


def test_an_off_policy_library_trains_for_the_frames_of_the_others(
    requested: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"skrl_sac": "agent.experiment.write_interval", "rl_games_sac": "params.config.num_steps_per_episode"}
    agents = {name: AgentCard(fields={path: field(32)}) for name, path in fields.items()}
    card = dataclasses.replace(CARD, agents={**CARD.agents, **agents})
    monkeypatch.setattr(libraries, "task_card", lambda *_, **__: card)
    monkeypatch.setattr(lookup, "card_of", lambda *_: card)
    compare_libraries("Isaac-Cartpole-Direct", ["rsl_rl", *fields], seeds=1, max_frames=64 * 320)
    assert requested == [(name, 64 * 320, 0) for name in ("rsl_rl", *fields)]


def test_evaluations_of_different_modes_are_not_compared(evaluated: list[rlnb.Run]) -> None:
    play = dataclasses.replace(evaluated[0].evaluations[-1], mode="play")
    train = dataclasses.replace(evaluated[1].evaluations[-1], mode="train")
    runs = {"echo": evaluated, "other": evaluated}
    wanted = r"modes of the evaluations differ: 'play' for echo and 'train' for echo, other\. Use run\.evaluate\(mode="
    with pytest.raises(rlnb.RlnbError, match=wanted):
        libraries.Comparison(runs=runs, evaluations={"echo": [play, train], "other": [train]})
    equal = libraries.Comparison(runs=runs, evaluations={"echo": [train], "other": [train]})
    assert list(equal.table()["mode"]) == ["train", "train"]
    assert "policies evaluated from reset, mode train" in equal._repr_html_()


T_975_1 = 12.706
"""Student's t for one degree of freedom, 97.5 %, from any table."""


@pytest.fixture
def evaluated(root: Path) -> list[rlnb.Run]:
    """Provide two runs that differ in their seed, each with an evaluation of ten episodes."""
    runs = [rlnb.train("Echo", library="echo", max_iterations=6, seed=seed).wait() for seed in range(2)]
    for run in runs:
        run.evaluate(episodes=10)
    return runs


def comparison(runs: list[rlnb.Run]) -> libraries.Comparison:
    return libraries.Comparison(runs={"echo": runs}, evaluations={"echo": [run.evaluations[-1] for run in runs]})


def test_several_seeds_have_students_interval(evaluated: list[rlnb.Run]) -> None:
    first, second = (run.evaluations[-1].mean_return for run in evaluated)
    row = comparison(evaluated).table().iloc[0]
    assert row["return"] == pytest.approx((first + second) / 2)
    half = T_975_1 * abs(first - second) / 2
    assert (row["return_low"], row["return_high"]) == pytest.approx(
        (row["return"] - half, row["return"] + half), rel=1e-3
    )
    assert row["interval_over"] == "seeds"
    assert "over episodes" not in comparison(evaluated)._repr_html_()


def test_one_seed_has_the_interval_of_its_evaluation_and_says_so(evaluated: list[rlnb.Run]) -> None:
    one = comparison(evaluated[:1])
    evaluation = evaluated[0].evaluations[-1]
    row = one.table().iloc[0]
    assert (row["return_low"], row["return_high"]) == evaluation.return_interval
    assert (row["success_low"], row["success_high"]) == evaluation.success_interval
    assert row["interval_over"] == "episodes"
    low, high = evaluation.return_interval
    assert f"{evaluation.mean_return:.3f} ({low:.3f} to {high:.3f}, over episodes)" in one._repr_html_()
    assert repr(one) == "Comparison(echo: 1 seed)"


def test_one_seed_without_an_interval_over_episodes_has_none() -> None:
    assert str(libraries.Mean.of([23.473], [None])) == "23.473"
    assert str(libraries.Mean.of([23.473], [(math.nan, math.nan)])) == "23.473"


def test_an_evaluation_that_fails_spoils_only_its_own_place(evaluated: list[rlnb.Run]) -> None:
    first, second = evaluated
    for checkpoint in second.checkpoints:
        checkpoint.unlink()
    with pytest.warns(UserWarning, match="The comparison goes on without this evaluation: .* ended before its first"):
        invalid = libraries._evaluation(second, 10)
    valid = libraries._evaluation(first, 10)
    assert invalid.problem
    both = libraries.Comparison(runs={"echo": evaluated}, evaluations={"echo": [valid, invalid]})
    row = both.table().iloc[0]
    assert (row["seeds"], row["return"]) == (2, valid.mean_return)
    assert f"<p>{html.escape(invalid.problem)}</p>" in both._repr_html_()
    neither = libraries.Comparison(runs={"echo": evaluated}, evaluations={"echo": [invalid, invalid]})
    assert math.isnan(neither.table().iloc[0]["return"])
