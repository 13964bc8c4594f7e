"""The viewer of a preview, without a browser: the tests set its controls directly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rlnb
from rlnb.cameras.preview import Preview

TIMES = 3
Take = Callable[..., Preview]


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
