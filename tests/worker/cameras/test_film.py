"""Films: the frames of an RTX renderer, for which there is a stand-in, and pictures of several envs as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.display.pictures import tiled
from rlnb.worker.cameras.films import Film
from rlnb.worker.cameras.rig import ADDED, SETTLING_FRAMES, Camera


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [
        (4, (240, 320), (480, 640)),
        (3, (240, 320), (480, 640)),
        (1, (241, 321), (241, 321)),
        (2, (100, 100), (300, 600)),
    ],
)
def test_tiles_are_never_tiny(count: int, size: tuple[int, int], expected: tuple[int, int]) -> None:
    images = np.stack([np.full((*size, 4), 10 * (number + 1), dtype=np.uint8) for number in range(count)])
    whole = tiled(images)
    assert whole.shape == (*expected, 3)
    assert set(np.unique(whole)) - {0} == {10 * (number + 1) for number in range(count)}
    assert whole[0, 0, 0] == 10


def test_a_film_begins_with_a_settled_picture_and_shows_each_step(rtx_env: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("av")
    pytest.importorskip("pxr")
    env = rtx_env(rlnb_preview=["rgb"])
    film = Film(tmp_path / "film.mp4", None)
    film.plan.cameras[ADDED] = Camera(own_path=None, own_types=(), twin=f"rlnb_{ADDED}", twin_types=("rgb",))
    image = env.scene.sensors["rlnb_preview"].data.output["rgb"].torch
    env.reset()
    film.begin(env)
    film.take(env)
    assert image[0, 0, 0].tolist() == [0, 1, 3], "the camera was aimed, and the noise is gone"
    for step in range(1, 4):
        env.step("action")
        updates = env.sim.updates
        film.take(env)
        assert image[0, 0, 0, :2].tolist() == [step, 1]
        assert env.sim.updates - updates < SETTLING_FRAMES, "frames of consecutive steps settle by themselves"
    env.scene.articulations["robot"].data.body_pos_w.torch[:] += 10.0
    env.step("action")
    film.take(env)
    assert image[0, 0, 0, :2].tolist() == [4, 2], "the camera has followed the robot"
    with film.whole():
        pass
