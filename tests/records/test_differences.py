"""The values in which runs differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.records.facts import differences


@pytest.fixture
def two(root: Path) -> list[rlnb.Run]:
    """Two runs with different seeds; the second starts from the first, and both have dumped their configs."""
    first = rlnb.train("Echo", library="echo", max_iterations=3, seed=1).wait()
    second = rlnb.train("Echo", library="echo", max_iterations=3, seed=2, init_from=first, agent={"goal": 2.0}).wait()
    for run, seed in ((first, 1), (second, 2)):
        dump(run, seed=seed, rate=0.1 * seed)
    return [first, second]


def dump(run: rlnb.Run, *, seed: int, rate: float, **env: Any) -> None:
    """Write configs as Isaac Lab does."""
    folder = run.path / "logs" / "params"
    folder.mkdir(exist_ok=True)
    others = "".join(f"{name}: {value}\n" for name, value in env.items())
    (folder / "env.yaml").write_text(f"seed: {seed}\nlog_dir: {run.path}/logs\nsim:\n  dt: 0.005\n{others}")
    (folder / "agent.yaml").write_text(f"seed: {seed}\nname: {run.id}\nalgorithm:\n  learning_rate: {rate}\n")


def test_only_what_says_something_differs(two: list[rlnb.Run]) -> None:
    first, second = two
    assert differences(two) == {
        "seed": {first.id: 1, second.id: 2},
        "init_from": {first.id: "", second.id: first.id},
        "agent.goal": {first.id: "", second.id: 2.0},
        "agent.algorithm.learning_rate": {first.id: 0.1, second.id: 0.2},
    }


def test_a_config_value_that_differs_from_its_argument_stays(two: list[rlnb.Run]) -> None:
    dump(two[1], seed=3, rate=0.2)
    assert list(differences(two)["env.seed"].values()) == [1, 3]


def test_a_run_that_waits_in_a_queue_is_compared_by_its_arguments(two: list[rlnb.Run]) -> None:
    waiting = rlnb.train("Echo", library="echo", max_iterations=3, seed=3).wait()
    assert [*differences([two[0], waiting])] == ["seed"], "it has no config, which is no difference of values"


def test_a_path_outside_of_the_runs_stays(two: list[rlnb.Run]) -> None:
    for number, run in enumerate(two):
        dump(run, seed=number + 1, rate=0.1, usd=f"/robots/{number}.usd")
    assert list(differences(two)["env.usd"].values()) == ["/robots/0.usd", "/robots/1.usd"]
    assert "env.log_dir" not in differences(two)


def test_modules_of_packages_are_compared_between_the_runs_that_have_imported_them(two: list[rlnb.Run]) -> None:
    modules = [{"mine.rewards": "1" * 64}, {"mine.rewards": "2" * 64, "another_project": "3" * 64}]
    for run, sources in zip(two, modules, strict=True):
        started = run.path / "jobs" / "0-train" / "started.json"
        content = json.loads(started.read_text()) | {"sources": sources}
        started.unlink()
        started.write_text(json.dumps(content))
    found = differences([rlnb.Run(run.path) for run in two])
    assert {name: [*row.values()] for name, row in found.items() if "source" in name} == {
        "source.mine.rewards": ["1" * 7, "2" * 7]
    }


def test_functions_of_a_cell_count_as_equal_if_their_names_are(two: list[rlnb.Run]) -> None:
    for number, run in enumerate(two):
        module = f"rlnb_task_pole_reach_{number:012x}"
        dump(run, seed=number + 1, rate=0.1, func=f"{module}:reach", funcs=f"[{module}:a, {'bc'[number]}]")
    rows = differences(two)
    assert "env.func" not in rows
    assert list(rows["env.funcs"].values()) == [["rlnb_task_pole_reach:a", "b"], ["rlnb_task_pole_reach:a", "c"]]
