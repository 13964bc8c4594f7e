"""Camera frames as pictures: colours, tiles, scale and legend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from rlnb.cameras.grid import colorize, depth_range_m, id_color, panel, picture, tiles
from rlnb.cameras.preview import Preview
from rlnb.tasks.requests import TaskFinding

TIMES, ENVS, HEIGHT, WIDTH = 3, (0, 2, 5), 24, 32
Take = Callable[..., Preview]
GREEN, RED = (0, 128, 96), (178, 34, 34)


def share(image: Image.Image, colour: tuple[int, int, int]) -> float:
    return float((np.asarray(image) == colour).all(axis=-1).mean())


def test_a_fault_is_a_red_badge_and_no_fault_a_green_one(take: Take) -> None:
    good = panel(take(), "wrist", "rgb")
    bad = panel(take(**{"wrist/rgb": np.full((TIMES, len(ENVS), HEIGHT, WIDTH, 3), 7, np.uint8)}), "wrist", "rgb")
    assert (share(good, RED), share(bad, GREEN)) == (0, 0)
    assert share(good, GREEN) > 0
    assert share(bad, RED) > 0.01


def test_the_picture_says_which_faults_noise_can_hide(take: Take) -> None:
    grey = (96, 96, 96)
    plain, noisy = panel(take(), "wrist", "rgb"), panel(take(noisy=("wrist",)), "wrist", "rgb")
    assert noisy.height > plain.height
    assert share(noisy, grey) > 0.01 > share(plain, grey)
    assert share(noisy, RED) == 0
    assert share(noisy, GREEN) > 0, "no other fault was found"
    assert panel(take(noisy=("wrist",)), "wrist", "depth").height == panel(take(), "wrist", "depth").height


def test_one_env_alone_is_larger_than_in_the_grid(take: Take) -> None:
    preview = take()
    tile = np.asarray(preview.clip["wrist"]["rgb"][1, 2])
    single = np.asarray(panel(preview, "wrist", "rgb", moment=1, env=2))
    factor = single.shape[1] // WIDTH
    assert factor > 10
    below_title = single[20 : 20 + HEIGHT * factor : factor, ::factor][:, :WIDTH]
    assert (below_title == tile).all()


def test_the_legend_of_a_segmentation_names_the_ids_of_all_moments(take: Take) -> None:
    ids = np.zeros((TIMES, len(ENVS), HEIGHT, WIDTH, 1), np.int32)
    without = panel(take(**{"front/semantic_segmentation": ids}), "front", "semantic_segmentation")
    ids[0, 0, 0, 0] = 1
    with_cube = panel(take(**{"front/semantic_segmentation": ids}), "front", "semantic_segmentation")
    assert with_cube.height > without.height, "a line for the cube, although the last moment does not show it"
    assert share(without, id_color(1)) == 0
    assert share(with_cube, id_color(1)) > 0


def test_a_picture_has_every_camera_and_data_type_side_by_side(take: Take) -> None:
    preview = take()
    panels = [panel(preview, camera, data_type) for camera, types in preview.clip.items() for data_type in types]
    assert picture(preview).height == max(one.height for one in panels)
    assert picture(preview).width > sum(one.width for one in panels)


def test_depth_that_hit_nothing_has_a_colour_of_its_own() -> None:
    depth = np.array([1.0, 2.0, np.inf], np.float32).reshape(1, 1, 3, 1)
    assert depth_range_m(depth) == (1.0, 2.0)
    near, far, miss = colorize(depth, "depth")[0, 0].tolist()
    assert miss == [32, 32, 32]
    assert len({tuple(near), tuple(far), tuple(miss)}) == 3
    nothing = np.full((1, 1, 1, 1), np.inf, np.float32)
    assert depth_range_m(nothing) == (0.0, 1.0)
    assert colorize(nothing, "depth")[0, 0, 0].tolist() == [32, 32, 32]


def test_normals_become_colours_and_labels_the_colours_of_their_ids() -> None:
    normals = np.array([[-1.0, 0.0, 1.0], [np.nan, np.nan, np.nan]], np.float32).reshape(1, 1, 2, 3)
    assert colorize(normals, "normals")[0, 0].tolist() == [[0, 127, 255], [127, 127, 127]]
    ids = np.array([0, 1, 8], np.int32).reshape(1, 1, 3, 1)
    background, first, eighth = (tuple(pixel) for pixel in colorize(ids, "semantic_segmentation")[0, 0].tolist())
    assert (background, first) == (id_color(0), id_color(1))
    assert eighth == first, "seven colours, in turn"


@pytest.mark.parametrize("data_type", ["rgb", "rgba"])
def test_tiles_show_every_env(data_type: str) -> None:
    frames = np.zeros((2, 8, 8, len(data_type)), np.uint8)
    frames[0, ..., 0], frames[1, ..., 1] = 200, 100
    image = tiles(frames, data_type)
    assert image.shape[-1] == 3
    assert {(200, 0, 0), (0, 100, 0)} <= {tuple(pixel) for pixel in image.reshape(-1, 3).tolist()}


def test_mistakes_of_the_task_stand_above_the_cameras(take: Take) -> None:
    warning = TaskFinding(level="warning", what="The reward is nan in step 1.", fix="Look at it.")
    note = TaskFinding(level="note", what="The reward term 'bonus' was 0.", fix="Look at it.")
    good, bad, noted = picture(take()), picture(take(findings=(warning,))), picture(take(findings=(note,)))
    assert bad.height == noted.height > good.height
    above = (0, 0, good.width, bad.height - good.height)
    assert share(bad.crop(above), RED) > 0.5
    assert share(noted.crop(above), RED) == 0
    assert share(bad.crop((0, above[3], good.width, bad.height)), RED) == 0, "the pictures are unchanged"
