"""Camera frames as pictures: colours, tiles, scale and legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rlnb.cameras import grid
from rlnb.cameras.grid import colorize, depth_range_m, id_color, picture, tiles
from rlnb.cameras.preview import Preview
from rlnb.display.pictures import WIDTH_PX
from rlnb.protocol.requests import TaskFinding

TIMES, ENVS, HEIGHT, WIDTH = 3, (0, 2, 5), 24, 32
Take = Callable[..., Preview]
GREEN, RED = (0, 128, 96), (178, 34, 34)


def panel(*arguments: Any, **more: Any) -> Image.Image:
    return grid.panel(*arguments, **more).image


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
    below_title = single[22 : 22 + HEIGHT * factor : factor, ::factor][:, :WIDTH]
    assert (below_title == tile).all()


def test_the_legend_of_a_segmentation_names_the_ids_of_all_moments(take: Take) -> None:
    ids = np.zeros((TIMES, len(ENVS), HEIGHT, WIDTH, 1), np.int32)
    without = panel(take(**{"front/semantic_segmentation": ids}), "front", "semantic_segmentation")
    ids[0, 0, 0, 0] = 2
    with_hand = panel(take(**{"front/semantic_segmentation": ids}), "front", "semantic_segmentation")
    assert share(without, id_color(2)) == 0
    assert share(with_hand, id_color(2)) > 0, "an entry for the hand, although the last moment does not show it"


def test_a_picture_has_every_camera_and_data_type_side_by_side(take: Take) -> None:
    preview = take()
    panels = [panel(preview, camera, data_type) for camera, types in preview.clip.items() for data_type in types]
    assert picture(preview).height >= max(one.height for one in panels)
    assert picture(preview).width > sum(one.width for one in panels[:2])


def many(take: Take, cameras: int, types: int, envs: int, size: tuple[int, int]) -> Preview:
    """Return a preview of black pictures."""
    width, height = size
    kinds = ["rgb", "albedo", "rgba", "normals", "depth"][:types]
    frames = {kind: np.zeros((1, envs, height, width, 3), np.uint8) for kind in kinds}
    clip = {f"camera {number}": frames for number in range(cameras)}
    return dataclasses.replace(take(), clip=clip, envs=tuple(range(envs)))


@pytest.mark.parametrize(
    ("cameras", "types", "envs", "size", "columns"),
    [
        (1, 5, 64, (160, 120), 1),
        (1, 5, 4, (160, 120), 3),
        (1, 4, 4, (160, 120), 2),
        (4, 2, 4, (160, 120), 2),
        (1, 5, 4, (640, 480), 3),
        (6, 1, 4, (160, 120), 3),
        (2, 2, 1, (64, 64), 4),
    ],
)
def test_a_picture_fits_into_a_cell_and_its_tiles_are_readable(
    take: Take, cameras: int, types: int, envs: int, size: tuple[int, int], columns: int
) -> None:
    preview = many(take, cameras, types, envs, size)
    assert grid._columns(preview) == columns
    whole = picture(preview)
    assert whole.width <= WIDTH_PX
    one = grid.panel(preview, "camera 0", "rgb", width_px=grid._room(columns))
    assert one.places.width >= min(128, size[0]), "a tile is no speck"


def test_titles_that_are_wider_than_their_tiles_do_not_make_a_picture_too_wide(take: Take) -> None:
    names = ("rgb", "albedo", "semantic_segmentation", "instance_segmentation", "instance_id_segmentation_fast")
    frames = np.zeros((1, 1, 96, 128, 3), np.uint8)
    alone = dataclasses.replace(take(), clip={"a camera": dict.fromkeys(names, frames)}, envs=(0,))
    assert picture(alone).width <= WIDTH_PX


def test_the_envs_of_a_thousand_are_no_specks_either(take: Take) -> None:
    one = grid.panel(many(take, 1, 1, 1024, (64, 48)), "camera 0", "rgb")
    assert one.image.width <= WIDTH_PX
    assert one.places.width >= 64


def test_a_point_of_the_picture_belongs_to_an_env(take: Take) -> None:
    one = grid.panel(take(), "wrist", "rgb")
    down = (one.top + 1) / one.image.height
    assert one.env_at(0.0, down) == 0
    assert one.env_at((one.places.width + 5) / one.image.width, down) == 1
    assert one.env_at(0.0, (one.top + one.places.height + 5) / one.image.height) == 2
    assert one.env_at(0.0, 0.0) is None, "the title"
    assert one.env_at(0.9, 0.9) is None, "there is no fourth env"


def test_a_long_legend_has_columns_and_an_end(take: Take) -> None:
    labels = {number: f"/World/envs/env_{number}/robot" for number in range(66)}
    ids = np.arange(66, dtype=np.int32)
    frames = np.zeros((TIMES, len(ENVS), HEIGHT, WIDTH, 1), np.int32)
    frames[0, 0].ravel()[: ids.size] = ids
    key = "front/instance_segmentation"
    preview = take(**{key: frames})
    full = dataclasses.replace(preview, labels={**preview.labels, key: labels})
    few = dataclasses.replace(preview, labels={**preview.labels, key: {1: labels[1]}})
    extra = panel(full, "front", "instance_segmentation").height - panel(few, "front", "instance_segmentation").height
    assert extra == grid.LEGEND_LINES * grid._CAPTION_PX, "12 lines and one that says how many are missing"
    font = grid._font()
    legend = grid.Legend.of([*labels.items()], WIDTH_PX, font)
    assert legend.more == 66 - len(legend.entries)
    assert len(legend.entries) == grid.LEGEND_LINES * (WIDTH_PX // legend.column_px) > 24
    assert grid.Legend.of([(1, "cube")], 200, font).rows == 1


def test_the_end_of_a_long_path_stays() -> None:
    path = "/World/envs/env_63/robot/" + "link/" * 10 + "camera"
    assert grid._shortened(path).startswith("…")
    assert grid._shortened(path).endswith("link/camera")
    assert grid._shortened("cube " * 20).startswith("cube cube")
    assert len(grid._shortened(path)) == len(grid._shortened("cube " * 20)) == grid.LABEL_LENGTH
    assert grid._shortened("cube") == "cube"


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
    ids = np.array([0, 2, 9], np.int32).reshape(1, 1, 3, 1)
    background, first, eighth = (tuple(pixel) for pixel in colorize(ids, "semantic_segmentation")[0, 0].tolist())
    assert (background, first) == (id_color(0), id_color(2))
    assert eighth == first, "seven colours, in turn"


@pytest.mark.parametrize("data_type", ["rgb", "rgba"])
def test_tiles_show_every_env(data_type: str) -> None:
    frames = np.zeros((2, 8, 8, len(data_type)), np.uint8)
    frames[0, ..., 0], frames[1, ..., 1] = 200, 100
    image = tiles(frames, data_type)
    assert image.shape[-1] == 3
    assert {(200, 0, 0), (0, 100, 0)} <= {tuple(pixel) for pixel in image.reshape(-1, 3).tolist()}


def test_no_label_has_the_colour_of_the_background_or_of_what_has_no_label():
    assert not {id_color(number) for number in range(2, 100)} & {id_color(0), id_color(1)}


def test_mistakes_of_the_task_stand_above_the_cameras(take: Take) -> None:
    warning = TaskFinding(level="warning", what="The reward is nan in step 1.", fix="Look at it.")
    note = TaskFinding(level="note", what="The reward term 'bonus' was 0.", fix="Look at it.")
    good, bad, noted = picture(take()), picture(take(findings=(warning,))), picture(take(findings=(note,)))
    assert bad.height == noted.height > good.height
    above = (0, 0, good.width, bad.height - good.height)
    assert share(bad.crop(above), RED) > 0.5
    assert share(noted.crop(above), RED) == 0
    assert share(bad.crop((0, above[3], good.width, bad.height)), RED) == 0, "the pictures are unchanged"
