"""``max_frames`` is refused where the frames of a training cannot be counted."""

from __future__ import annotations

from typing import Any

import pytest

import rlnb
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.hooks import plugins
from rlnb.plugin import Manifest
from rlnb.training.checks import check_frames

FIELDS = {
    "num_steps_per_env": ConfigField(type="int", value=24),
    "max_iterations": ConfigField(type="int", value=300),
}
CARD = TaskCard(task="Lift", workflow="direct", num_envs=64, agents={"rsl_rl": AgentCard(fields=FIELDS)})


def problems(library: str = "rsl_rl", fields: dict[str, ConfigField] = FIELDS, **arguments: Any) -> list[str]:
    values = {"max_frames": 1000, **arguments}
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Lift"), library=library, **values)
    card = CARD if plugins.library(library).simulator else None
    agent = AgentCard(fields=fields) if card else None
    found = check_frames(manifest, plugins.library(library), card, agent)
    return [f"{problem.what} {problem.fix}" for problem in found]


def test_frames_are_counted_by_the_horizon_of_the_agent_config() -> None:
    assert problems() == problems(max_frames=None) == []
    assert problems(fields={}) == [
        "the agent config of rsl_rl has no 'num_steps_per_env', so its frames cannot be counted. Use max_iterations."
    ]
    assert problems(fields={}, agent={"+num_steps_per_env": 8}) == []


def test_frames_and_iterations_exclude_each_other() -> None:
    assert problems(max_iterations=5) == ["max_iterations=5 and max_frames=1000 exclude each other. Use one of them."]
    assert problems(max_iterations=5, max_frames=None) == []


def test_an_agent_value_that_sets_the_iterations_contradicts_the_frames() -> None:
    (problem,) = problems(agent={"max_iterations": 5})
    assert problem == ("agent config of rsl_rl: max_iterations is 5, but rlnb.train has max_frames. Leave it out here.")
    assert problems(agent={"max_iterations": 300}) == [], "the default, as in a dumped config"


def test_without_a_simulator_there_are_no_frames(root: Any) -> None:
    text = "echo trains without a simulator, so it has no frames to count. Use max_iterations."
    assert problems("echo") == [text]
    with pytest.raises(rlnb.CheckError, match="echo trains without a simulator, so it has no frames to count"):
        rlnb.train("Echo", library="echo", max_frames=100)


@pytest.mark.parametrize("value", [0, -5, 1.5, True, "10"])
def test_frames_are_a_positive_whole_number(root: Any, value: object) -> None:
    found = rlnb.check("Echo", library="echo", max_frames=value)
    assert any("max_frames=" in problem.what and "positive whole number" in problem.what for problem in found)


def test_frames_of_numpy_are_whole_numbers_too(root: Any) -> None:
    import numpy as np

    (problem,) = rlnb.check("Echo", library="echo", max_frames=np.float64(1e6))
    assert "has no frames to count" in problem.what
