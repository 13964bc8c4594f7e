"""A preview as text, pictures and videos, without a simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.cameras.preview import Preview, check_preview
from rlnb.configs.card import CameraCard, TaskCard
from rlnb.plugin import Problem
from rlnb.protocol.requests import TaskFinding

TIMES = 3
Take = Callable[..., Preview]


def test_videos_have_every_moment_at_the_speed_of_the_task(tmp_path: Path, take: Take) -> None:
    preview = take()
    gif = Image.open(preview.save(tmp_path / "film.gif"))
    assert (gif.n_frames, gif.info["duration"]) == (TIMES, 100)
    assert Image.open(preview.save(tmp_path / "still.png")).size == preview.image.size
    av = pytest.importorskip("av")
    with av.open(str(preview.save(tmp_path / "film.mp4"))) as film:
        (stream,) = film.streams.video
        assert float(stream.average_rate) == pytest.approx(10.0)
        assert len(list(film.decode(stream))) == TIMES


def test_another_suffix_is_refused_with_the_valid_ones(tmp_path: Path, take: Take) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"film\.webm.*\.png, \.gif or \.mp4"):
        take().save(tmp_path / "film.webm")


def test_faults_are_part_of_the_repr(take: Take) -> None:
    assert repr(take()) == "Preview('T', env 0, 2, 5, wrist: rgb, depth; front: semantic_segmentation)"
    bad = take(**{"wrist/rgb": np.full((3, 3, 24, 32, 3), 7, np.uint8)})
    assert "wrist rgb: blank in env 0, 2, 5: all pixels have one colour (7, 7, 7)" in repr(bad)


def test_mistakes_of_the_task_are_part_of_the_repr(take: Take) -> None:
    found = TaskFinding(level="warning", what="The reward is nan in step 1.", fix="Look at it.")
    preview = take(findings=(found,))
    assert preview.task_findings == (found,)
    assert "\n  warning: The reward is nan in step 1. Look at it." in repr(preview)


def test_the_repr_says_which_faults_noise_can_hide(take: Take) -> None:
    text = repr(take(noisy=("wrist", "front")))
    assert text.splitlines()[1:] == ["  wrist rgb: noise can hide: stale, duplicate"], "ids and depths have no noise"


def test_an_interim_clip_is_not_inspected(take: Take) -> None:
    bad = take(inspected=False, **{"wrist/rgb": np.full((3, 3, 24, 32, 3), 7, np.uint8)})
    assert bad.findings == ()


# -- browse ----------------------------------------------------------------------------------------------------------


def test_the_picture_follows_the_controls(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = take()
    assert preview.browse() is preview, "a report has no sliders to move"
    monkeypatch.setattr(rlnb.options, "display", "live")
    controls, sliders, image = preview.browse().children
    camera, data_type = controls.children
    env, time = sliders.children
    first = bytes(image.value)
    assert first.startswith(b"\x89PNG")
    assert time.index == TIMES - 1
    env.value = 5
    single = bytes(image.value)
    assert single != first
    time.index = 0
    assert bytes(image.value) != single
    data_type.value = "depth"
    of_depth = bytes(image.value)
    camera.value = "front"
    assert data_type.value == "semantic_segmentation"
    assert bytes(image.value) not in (of_depth, first)


def test_a_click_on_an_env_shows_it_alone_and_another_click_shows_all(
    take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "display", "live")
    _, sliders, image = take().browse().children
    env, _ = sliders.children
    all_envs = bytes(image.value)
    image._handle_custom_msg({"x": 0.9, "y": 0.25}, [])
    assert env.value == 2, "the second of the envs 0, 2 and 5"
    assert bytes(image.value) != all_envs
    image._handle_custom_msg({"x": 0.9, "y": 0.25}, [])
    assert env.value == "all"
    assert bytes(image.value) == all_envs
    image._handle_custom_msg({"x": 0.0, "y": 0.0}, [])
    assert env.value == "all", "the title is no env"


def test_a_data_type_that_both_cameras_have_stays_when_the_camera_changes(
    take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlnb.options, "display", "live")
    preview = take()
    both = take(**{"front/depth": preview.clip["wrist"]["depth"]})
    camera, data_type = both.browse().children[0].children
    data_type.value = "depth"
    camera.value = "front"
    assert data_type.value == "depth"


# -- checks ----------------------------------------------------------------------------------------------------------


CARD = TaskCard(
    task="Demo",
    cameras={"wrist": CameraCard(data_types=("rgb",), width=64, height=48), "front": CameraCard(width=64, height=48)},
)


def problems(card: TaskCard = CARD, **arguments: Any) -> Sequence[Problem]:
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
