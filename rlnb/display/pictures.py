"""Pictures side by side and in tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_WIDTH = 240
"""Pixels of a tile; smaller cameras are enlarged by whole factors."""


def tiled(images: Any) -> Any:
    """Return pictures as one.

    Args:
        images: Shape (n, height, width, channels), channels at least 3, uint8.

    Returns:
        Shape (rows * height, columns * width, 3), uint8; small ones enlarged.
    """
    import numpy as np

    factor = max(1, math.ceil(LEAST_WIDTH / images.shape[2]))
    images = images[..., :3].repeat(factor, axis=1).repeat(factor, axis=2)
    count, height, width, _ = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    whole = np.zeros((rows * height, columns * width, 3), dtype=np.uint8)
    for number, image in enumerate(images):
        top, left = number // columns * height, number % columns * width
        whole[top : top + height, left : left + width] = image
    return whole


def beside(pictures: Sequence[Image]) -> Image:
    """Return pictures side by side as one."""
    from PIL import Image

    whole = Image.new("RGB", (sum(one.width for one in pictures), max(one.height for one in pictures)), "white")
    left = 0
    for one in pictures:
        whole.paste(one, (left, 0))
        left += one.width
    return whole


GAP_PX = 2


def mosaic(pictures: np.ndarray, longest_px: int) -> np.ndarray:
    """Arrange (N, H, W, 3) pictures in a grid that is about as wide as high."""
    count, height, width, _ = pictures.shape
    scale = max(1, longest_px // max(height, width))
    pictures = pictures.repeat(scale, axis=1).repeat(scale, axis=2)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    high, wide = height * scale, width * scale
    grid = np.full((rows * (high + GAP_PX) - GAP_PX, columns * (wide + GAP_PX) - GAP_PX, 3), 255, np.uint8)
    for index, tile in enumerate(pictures):
        y, x = divmod(index, columns)
        grid[y * (high + GAP_PX) :, x * (wide + GAP_PX) :][:high, :wide] = tile
    return grid
