"""Pictures side by side and in tiles, and a palette of distinguishable colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
WIDTH_PX = 1100
"""Largest width of a picture for a notebook, whose cells are about as wide."""
READABLE_PX = 160
"""Width at which a tile is readable. Wider tiles may be shrunk to it, so that more of them are side by side."""
_LEAST_TILE_PX = 96
"""Least width of a shrunk tile. A mosaic has fewer columns if its tiles would be smaller."""


def red_green_blue(colour: str) -> tuple[int, int, int]:
    """Return the three components, 0 to 255, of a colour such as ``"#0072B2"``."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


def beside(pictures: Sequence[Image], gap_px: int = 0) -> Image:
    """Return one picture with pictures side by side."""
    from PIL import Image

    width = sum(one.width for one in pictures) + gap_px * (len(pictures) - 1)
    whole = Image.new("RGB", (width, max(one.height for one in pictures)), "white")
    edge = 0
    for one in pictures:
        whole.paste(one, (edge, 0))
        edge += one.width + gap_px
    return whole


def flowing(pictures: Sequence[Image], width_px: int = WIDTH_PX) -> Image:
    """Return one picture with pictures side by side, in as many rows as a limit of the width needs."""
    rows: list[list[Image]] = []
    for one in pictures:
        if not rows or sum(other.width for other in rows[-1]) + one.width > width_px:
            rows.append([])
        rows[-1].append(one)
    return stacked([beside(row) for row in rows])


def stacked(pictures: Sequence[Image], gap_px: int = 0) -> Image:
    """Return one picture with pictures below each other."""
    from PIL import Image

    height = sum(one.height for one in pictures) + gap_px * (len(pictures) - 1)
    whole = Image.new("RGB", (max(one.width for one in pictures), height), "white")
    edge = 0
    for one in pictures:
        whole.paste(one, (0, edge))
        edge += one.height + gap_px
    return whole


@dataclass(frozen=True, kw_only=True, slots=True)
class Tiling:
    """The places of tiles in a mosaic, row by row."""

    count: int
    """Number of tiles."""
    columns: int
    width: int
    """Width of a tile in pixels."""
    height: int
    """Height of a tile in pixels."""
    gap_px: int = GAP_PX
    """Pixels between two tiles."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the mosaic."""
        rows = math.ceil(self.count / self.columns)
        return (
            rows * (self.height + self.gap_px) - self.gap_px,
            self.columns * (self.width + self.gap_px) - self.gap_px,
            3,
        )

    def corner(self, number: int) -> tuple[int, int]:
        """Return the row and the column of the upper left pixel of a tile."""
        row, column = divmod(number, self.columns)
        return row * (self.height + self.gap_px), column * (self.width + self.gap_px)

    def at(self, row: float, column: float) -> int | None:
        """Return the number of the tile at a pixel of the mosaic; None outside of all tiles."""
        down, right = int(row // (self.height + self.gap_px)), int(column // (self.width + self.gap_px))
        number = down * self.columns + right
        return number if 0 <= right < self.columns and 0 <= number < self.count else None


def tiling(count: int, width: int, height: int, *, longest_px: int, width_px: int = WIDTH_PX) -> Tiling:
    """Return a mosaic with about as many rows as columns. It is no wider than a limit if its tiles can be so small.

    Args:
        count: Number of tiles.
        width: Width of a picture, in pixels.
        height: Height of a picture, in pixels.
        longest_px: Maximum length of the longer side of a picture that is enlarged, by a whole factor.
        width_px: Largest width of the mosaic. Tiles that are too wide for it are shrunk.
    """
    scale = max(1, longest_px // max(width, height))
    columns = math.ceil(math.sqrt(count))
    while columns > 1 and _room(columns, width_px) < min(_LEAST_TILE_PX, width * scale):
        columns -= 1
    room = max(1, _room(columns, width_px))
    scale = max(1, min(scale, room // width))
    edge = min(width * scale, room)
    return Tiling(count=count, columns=columns, width=edge, height=max(1, round(height * edge / width)))


def _room(columns: int, width_px: int) -> int:
    """Return the largest width of a tile in a mosaic of some columns."""
    return (width_px + GAP_PX) // columns - GAP_PX


def tiled(pictures: np.ndarray) -> np.ndarray:
    """Return pictures as the tiles of a video: without gaps, small ones enlarged, empty tiles black.

    Args:
        pictures: Shape (n, height, width, channels), channels at least 3, uint8.

    Returns:
        Shape (rows * height, columns * width, 3), uint8.
    """
    count, height, width, _ = pictures.shape
    scale = max(1, math.ceil(LEAST_WIDTH_PX / width))
    columns = math.ceil(math.sqrt(count))
    places = Tiling(count=count, columns=columns, width=width * scale, height=height * scale, gap_px=0)
    return mosaic(pictures, places, background=0)


def mosaic(pictures: np.ndarray, places: Tiling, *, smooth: bool = True, background: int = 255) -> np.ndarray:
    """Return pictures as tiles of one picture.

    Args:
        pictures: Shape (n, height, width, channels), channels at least 3, uint8.
        places: The tiles. Pictures are enlarged without smoothing.
        smooth: Whether a pixel of a shrunk picture is the mean of several; otherwise it is one of them.
        background: Brightness between the tiles, 0 to 255.

    Returns:
        Shape (height, width, 3), uint8.
    """
    whole = np.full(places.shape, background, np.uint8)
    for number, picture in enumerate(pictures):
        row, column = places.corner(number)
        whole[row:, column:][: places.height, : places.width] = _resized(picture[..., :3], places, smooth)
    return whole


def _resized(picture: np.ndarray, places: Tiling, smooth: bool) -> np.ndarray:
    from PIL import Image

    width = picture.shape[1]
    if places.width % width == 0:
        return picture.repeat(places.width // width, axis=0).repeat(places.width // width, axis=1)
    shrinks = smooth and places.width < width
    how = Image.Resampling.BOX if shrinks else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(np.ascontiguousarray(picture)).resize((places.width, places.height), how))
