"""Pictures side by side and in tiles. Videos of several envs: tests/worker/cameras/test_film.py."""

import numpy as np
from PIL import Image

from rlnb.display.pictures import GAP_PX, PALETTE, beside, mosaic, red_green_blue


def test_pictures_of_different_heights_stand_side_by_side_on_white():
    whole = beside([Image.new("RGB", (4, 3), "red"), Image.new("RGB", (2, 5), "blue")])
    assert whole.size == (6, 5)
    assert whole.getpixel((3, 2)) == (255, 0, 0)
    assert whole.getpixel((4, 4)) == (0, 0, 255)
    assert whole.getpixel((0, 4)) == (255, 255, 255), "below the lower one"


def test_tiles_are_as_many_rows_as_columns_with_white_lines_between_them():
    pictures = np.stack([np.full((4, 6, 3), 10 * number, np.uint8) for number in range(1, 4)])
    whole = mosaic(pictures, longest_px=6)
    assert whole.shape == (2 * 4 + GAP_PX, 2 * 6 + GAP_PX, 3)
    assert [int(whole[0, 0, 0]), int(whole[0, 6 + GAP_PX, 0]), int(whole[4 + GAP_PX, 0, 0])] == [10, 20, 30]
    assert (whole[4 : 4 + GAP_PX] == 255).all()
    assert (whole[4 + GAP_PX :, 6 + GAP_PX :] == 255).all(), "there is no fourth picture"


def test_small_pictures_are_enlarged_by_a_whole_factor_and_large_ones_stay():
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(1, 4, 6, 3)
    assert mosaic(picture, longest_px=20).shape == (12, 18, 3)
    assert (mosaic(picture, longest_px=20)[::3, ::3] == picture[0]).all()
    assert (mosaic(picture, longest_px=3) == picture[0]).all()


def test_the_colours_of_the_palette_differ_and_have_three_parts():
    assert red_green_blue("#0072B2") == (0, 114, 178)
    assert len({red_green_blue(colour) for colour in PALETTE}) == len(PALETTE) == 8
