"""Checks of a preview's arguments before the request to the simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

import rlnb
from rlnb.cameras.preview import check_preview
from rlnb.configs.card import CameraCard, TaskCard

CARD = TaskCard(
    task="Demo",
    cameras={"wrist": CameraCard(data_types=("rgb",), width=64, height=48), "front": CameraCard(width=64, height=48)},
)


def problems(card: TaskCard = CARD, **arguments: Any) -> Sequence[rlnb.Problem]:
    """Return the problems of a preview with these arguments and otherwise valid ones."""
    fine = {"cameras": None, "data_types": None, "num_envs": 4, "envs": None, "steps": 30, "every": None}
    try:
        check_preview(rlnb.Task(id="Demo"), card, **{**fine, "actions": "random", "size": (64, 64), **arguments})
    except rlnb.CheckError as exc:
        return exc.problems
    return ()


def test_all_problems_of_a_preview_are_reported_at_once() -> None:
    arguments = {"num_envs": True, "steps": -1, "every": 0, "actions": "wild", "cameras": ["wrost"], "envs": [9]}
    assert [problem.what for problem in problems(**arguments)] == [
        "num_envs=True is not a positive whole number.",
        "steps=-1 is not a whole number of at least 0.",
        "every=0 is not a positive whole number.",
        "envs=[9]: [9] is not in 0 to 0.",
        "actions='wild' is neither 'random' nor 'zero'.",
        "No camera named 'wrost'. Demo has: front, wrist. Did you mean 'wrist'?",
    ]
    assert [problem.fix for problem in problems(**arguments)][:3] == ["num_envs=4", "steps=30", "every=2"]


def test_a_preview_that_fits_has_no_problems() -> None:
    assert problems() == ()
    assert problems(steps=0, every=10, envs=[0, 3], cameras=["wrist"]) == ()
    assert problems(TaskCard(task="Demo"), cameras=["preview"]) == (), "the added camera"


def test_an_empty_list_of_envs_is_refused() -> None:
    (problem,) = problems(envs=[])
    assert problem.what == "envs=[]: the list is empty."


def test_a_preview_that_would_not_fit_into_memory_is_refused_and_normals_count_three_times() -> None:
    card = TaskCard(task="Demo", cameras={"wide": CameraCard(data_types=("rgb",), width=1024, height=1024)})
    assert problems(card, num_envs=110) == ()
    (problem,) = problems(card, num_envs=110, data_types=["normals"])
    assert "2 frames of these cameras and envs need 2.6 GiB, more than 2 GiB." in problem.what
    (problem,) = problems(card, num_envs=110, every=10)
    assert problem.what.startswith("5 frames")
    assert problems(card, num_envs=110, every=10, envs=range(4)) == ()


def test_a_camera_is_only_aimed_if_it_is_added() -> None:
    own = TaskCard(task="Demo")
    assert problems(own, eye=(1, 2.5, 3), target=[0, 0, 0]) == ()
    assert [problem.what for problem in problems(own, eye=(1, 2), target="abc")] == [
        "eye=(1, 2) is not a position of three numbers in metres.",
        "target='abc' is not a position of three numbers in metres.",
    ]
    (problem,) = problems(target=(0, 0, 0))
    assert problem.what == "target= aims a camera that rlnb adds, but the task has its own: wrist, front."


def test_problems_of_the_task_are_reported_too() -> None:
    with pytest.raises(rlnb.CheckError, match="physics='physx': Demo has none"):
        check_preview(rlnb.Task(id="Demo", physics="physx"), CARD, None, None, 4, None, 1, None, "zero", (64, 64))


def test_a_preview_of_what_needs_isaac_sim_is_refused_in_the_words_of_the_check() -> None:
    (problem,) = problems(dataclasses.replace(CARD, isaac_sim=("Isaac Sim PhysX physics (`PhysxCfg`)",)))
    assert problem.what.startswith("Demo needs Isaac Sim")
    assert problem.fix.startswith("sim.physics=NewtonCfg() in the task's config")
