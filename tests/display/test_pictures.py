"""Pictures side by side and in tiles. Videos of several envs: tests/worker/cameras/test_film.py."""

import numpy as np
from PIL import Image

from rlnb.display.pictures import (
    GAP_PX,
    PALETTE,
    Tiling,
    beside,
    flowing,
    mosaic,
    red_green_blue,
    stacked,
    tiling,
)


def test_pictures_of_different_heights_stand_side_by_side_on_white():
    whole = beside([Image.new("RGB", (4, 3), "red"), Image.new("RGB", (2, 5), "blue")])
    assert whole.size == (6, 5)
    assert whole.getpixel((3, 2)) == (255, 0, 0)
    assert whole.getpixel((4, 4)) == (0, 0, 255)
    assert whole.getpixel((0, 4)) == (255, 255, 255), "below the lower one"


def test_pictures_flow_into_rows_that_are_not_too_wide():
    pictures = [Image.new("RGB", (4, 3), "red"), Image.new("RGB", (2, 5), "blue"), Image.new("RGB", (3, 1), "green")]
    whole = flowing(pictures, width_px=7)
    assert whole.size == (6, 6)
    assert whole.getpixel((4, 0)) == (0, 0, 255)
    assert whole.getpixel((0, 5)) == (0, 128, 0), "in the second row"
    assert stacked(pictures, 2).size == (4, 3 + 5 + 1 + 4)


def enlarged(pictures, longest_px, **more):
    count, height, width, _ = pictures.shape
    return mosaic(pictures, tiling(count, width, height, longest_px=longest_px, **more))


def test_tiles_are_as_many_rows_as_columns_with_white_lines_between_them():
    pictures = np.stack([np.full((4, 6, 3), 10 * number, np.uint8) for number in range(1, 4)])
    whole = enlarged(pictures, longest_px=6)
    assert whole.shape == (2 * 4 + GAP_PX, 2 * 6 + GAP_PX, 3)
    assert [int(whole[0, 0, 0]), int(whole[0, 6 + GAP_PX, 0]), int(whole[4 + GAP_PX, 0, 0])] == [10, 20, 30]
    assert (whole[4 : 4 + GAP_PX] == 255).all()
    assert (whole[4 + GAP_PX :, 6 + GAP_PX :] == 255).all(), "there is no fourth picture"


def test_small_pictures_are_enlarged_by_a_whole_factor_and_large_ones_stay():
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(1, 4, 6, 3)
    assert enlarged(picture, longest_px=20).shape == (12, 18, 3)
    assert (enlarged(picture, longest_px=20)[::3, ::3] == picture[0]).all()
    assert (enlarged(picture, longest_px=3) == picture[0]).all()


def test_a_mosaic_that_would_be_too_wide_has_a_smaller_factor_then_smaller_tiles_then_fewer_columns():
    assert tiling(4, 64, 48, longest_px=192, width_px=300) == Tiling(count=4, columns=2, width=128, height=96)
    assert tiling(4, 200, 100, longest_px=192, width_px=302) == Tiling(count=4, columns=2, width=150, height=75)
    assert tiling(100, 200, 100, longest_px=192, width_px=494) == Tiling(count=100, columns=5, width=97, height=48)
    assert tiling(1, 200, 100, longest_px=192, width_px=50) == Tiling(count=1, columns=1, width=50, height=25)


def test_a_shrunk_picture_is_a_mean_and_labels_stay_labels():
    picture = np.zeros((1, 2, 4, 3), np.uint8)
    picture[0, :, ::2] = 200
    places = Tiling(count=1, columns=1, width=2, height=1)
    assert mosaic(picture, places).tolist() == [[[100] * 3, [100] * 3]]
    assert {*mosaic(picture, places, smooth=False).ravel().tolist()} <= {0, 200}


def test_a_point_of_a_mosaic_belongs_to_a_tile():
    places = Tiling(count=3, columns=2, width=10, height=5)
    assert [places.at(0, 0), places.at(4, 13), places.at(8, 3)] == [0, 1, 2]
    assert [places.at(8, 13), places.at(-3, 0), places.at(0, -3), places.at(0, 25)] == [None] * 4
    assert [places.corner(number) for number in range(3)] == [(0, 0), (0, 12), (7, 0)]


def test_the_colours_of_the_palette_differ_and_have_three_parts():
    assert red_green_blue("#0072B2") == (0, 114, 178)
    assert len({red_green_blue(colour) for colour in PALETTE}) == len(PALETTE) == 8
