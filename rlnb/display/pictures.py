"""Pictures side by side and in tiles, and a palette of distinguishable colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

# Okabe and Ito's palette for colour-blind readers (https://jfly.uni-koeln.de/color/), with blue and vermilion
# first, and yellow last because it is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
LEAST_WIDTH_PX = 240
"""Minimum width of a tile in a video. Smaller pictures are enlarged by a whole factor."""
GAP_PX = 2
"""Width of the white line between two tiles of a mosaic."""


def red_green_blue(colour: str) -> tuple[int, int, int]:
    """Return the three components, 0 to 255, of a colour such as ``"#0072B2"``."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


def beside(pictures: Sequence[Image]) -> Image:
    """Return one picture with pictures side by side."""
    from PIL import Image

    whole = Image.new("RGB", (sum(one.width for one in pictures), max(one.height for one in pictures)), "white")
    edge = 0
    for one in pictures:
        whole.paste(one, (edge, 0))
        edge += one.width
    return whole


def tiled(pictures: np.ndarray) -> np.ndarray:
    """Return pictures as the tiles of a video: without gaps, small ones enlarged, empty tiles black.

    Args:
        pictures: Shape (n, height, width, channels), channels at least 3, uint8.

    Returns:
        Shape (rows * height, columns * width, 3), uint8.
    """
    return _grid(pictures, max(1, math.ceil(LEAST_WIDTH_PX / pictures.shape[2])), gap_px=0, background=0)


def mosaic(pictures: np.ndarray, longest_px: int) -> np.ndarray:
    """Return pictures as tiles with white lines between them, small ones enlarged.

    Args:
        pictures: Shape (n, height, width, 3), uint8.
        longest_px: Maximum length of the longer side of a picture that is enlarged, by a whole factor.

    Returns:
        Shape (height, width, 3), uint8.
    """
    return _grid(pictures, max(1, longest_px // max(pictures.shape[1:3])), gap_px=GAP_PX, background=255)


def _grid(pictures: np.ndarray, scale: int, *, gap_px: int, background: int) -> np.ndarray:
    """Arrange enlarged pictures in a grid with about as many rows as columns."""
    pictures = pictures[..., :3].repeat(scale, axis=1).repeat(scale, axis=2)
    count, height, width, _ = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    shape = (rows * (height + gap_px) - gap_px, columns * (width + gap_px) - gap_px, 3)
    whole = np.full(shape, background, np.uint8)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        whole[row * (height + gap_px) :, column * (width + gap_px) :][:height, :width] = picture
    return whole
