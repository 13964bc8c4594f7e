"""Camera frames as a picture: a grid of envs per camera and data type, with scale and legend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rlnb import plugins

if TYPE_CHECKING:
    from PIL.Image import Image

    from rlnb.frames import Preview

TILE_PX = 192
"""Longer side of one env's picture; smaller frames are enlarged without smoothing."""
_GAP_PX = 2
_CAPTION_PX = 20
_MARGIN_PX = 8
_BAR_PX = 12
_MISS = np.array([32, 32, 32], np.uint8)
"""Colour of depth that hit nothing."""
_BACKGROUND = np.array([24, 24, 24], np.uint8)
# Okabe and Ito's palette, which colour-blind people can tell apart (https://jfly.uni-koeln.de/color/).
_PALETTE = np.array(
    [(230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167)],
    np.uint8,
)

DEPTH = ("depth", "distance_to_image_plane", "distance_to_camera")


def colorize(frames: np.ndarray, data_type: str) -> np.ndarray:
    """Return pictures of camera frames; a plugin's ``rlnb_colorize`` comes first.

    Args:
        frames: Camera output. Shape (num_envs, height, width, channels).
        data_type: Isaac Lab's name of the output.

    Returns:
        Shape (num_envs, height, width, 3), uint8.
    """
    custom = plugins.manager().hook.rlnb_colorize(frames=frames, data_type=data_type)
    if custom is not None:
        return custom
    if data_type in DEPTH:
        return _depth(frames[..., 0], *depth_range_m(frames))
    if data_type.endswith("segmentation"):
        return _ids(frames[..., 0])
    if data_type == "normals":
        return ((np.clip(frames[..., :3], -1.0, 1.0) + 1.0) * 127.5).astype(np.uint8)
    return frames[..., :3].astype(np.uint8)


def depth_range_m(frames: np.ndarray) -> tuple[float, float]:
    """Return the nearest and farthest depth that hit something; (0, 1) when nothing did."""
    hits = frames[np.isfinite(frames)]
    return (float(hits.min()), float(hits.max())) if hits.size else (0.0, 1.0)


def _depth(depth_m: np.ndarray, near_m: float, far_m: float) -> np.ndarray:
    import matplotlib

    hit = np.isfinite(depth_m)
    share = np.clip((np.where(hit, depth_m, far_m) - near_m) / max(far_m - near_m, 1e-6), 0.0, 1.0)
    coloured = (matplotlib.colormaps["viridis_r"](share)[..., :3] * 255).astype(np.uint8)
    return np.where(hit[..., None], coloured, _MISS)


def id_color(number: int) -> tuple[int, int, int]:
    """Return the colour of a segmentation id; 0 is background."""
    colour = _BACKGROUND if number <= 0 else _PALETTE[(number - 1) % len(_PALETTE)]
    return int(colour[0]), int(colour[1]), int(colour[2])


def _ids(ids: np.ndarray) -> np.ndarray:
    known, inverse = np.unique(ids, return_inverse=True)
    return np.array([id_color(int(number)) for number in known], np.uint8)[inverse.reshape(ids.shape)]


def picture(preview: Preview) -> Image:
    """Return every camera and data type of a preview as one picture."""
    from PIL import Image

    panels = [
        _panel(f"{camera}: {data_type}", array, data_type, preview.labels.get(f"{camera}/{data_type}", {}))
        for camera, types in preview.frames.items()
        for data_type, array in types.items()
    ]
    width = sum(panel.width for panel in panels) + _MARGIN_PX * (len(panels) - 1)
    whole = Image.new("RGB", (width, max(panel.height for panel in panels)), "white")
    left = 0
    for panel in panels:
        whole.paste(panel, (left, 0))
        left += panel.width + _MARGIN_PX
    return whole


def _panel(title: str, frames: np.ndarray, data_type: str, labels: Mapping[int, str]) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=12)
    tiles = _tiles(colorize(frames, data_type))
    grid = Image.fromarray(tiles)
    shown = [(n, text) for n, text in sorted(labels.items()) if (frames == n).any()]
    footer = _CAPTION_PX * (len(shown) if shown else 1 if data_type in DEPTH else 0)
    panel = Image.new("RGB", (max(grid.width, 150), _CAPTION_PX + grid.height + footer + _GAP_PX), "white")
    panel.paste(grid, (0, _CAPTION_PX))
    draw = ImageDraw.Draw(panel)
    draw.text((0, 2), title, fill="black", font=font)
    top = _CAPTION_PX + grid.height + _GAP_PX
    for row, (number, text) in enumerate(shown):
        y = top + row * _CAPTION_PX
        draw.rectangle((0, y + 3, _BAR_PX, y + 3 + _BAR_PX), fill=id_color(number))
        draw.text((_BAR_PX + 5, y + 2), text[:40], fill="black", font=font)
    if data_type in DEPTH:
        _scale(panel, top, *depth_range_m(frames), font)
    return panel


def _scale(panel: Image, top: int, near_m: float, far_m: float, font: object) -> None:
    from PIL import Image, ImageDraw

    draw = ImageDraw.Draw(panel)
    left_text, right_text = f"{near_m:.2f} m", f"{far_m:.2f} m"
    start, end = 48, max(60, panel.width - 52)
    ramp = _depth(np.linspace(near_m, far_m, end - start, dtype=np.float32)[None], near_m, far_m)
    panel.paste(Image.fromarray(np.repeat(ramp, _BAR_PX, axis=0)), (start, top + 3))
    draw.text((0, top + 2), left_text, fill="black", font=font)  # type: ignore[arg-type]
    draw.text((end + 4, top + 2), right_text, fill="black", font=font)  # type: ignore[arg-type]


def _tiles(pictures: np.ndarray) -> np.ndarray:
    """Arrange (N, H, W, 3) pictures in a grid that is about as wide as high."""
    count, height, width, _ = pictures.shape
    scale = max(1, TILE_PX // max(height, width))
    pictures = pictures.repeat(scale, axis=1).repeat(scale, axis=2)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    high, wide = height * scale, width * scale
    grid = np.full((rows * (high + _GAP_PX) - _GAP_PX, columns * (wide + _GAP_PX) - _GAP_PX, 3), 255, np.uint8)
    for index, tile in enumerate(pictures):
        y, x = divmod(index, columns)
        grid[y * (high + _GAP_PX) :, x * (wide + _GAP_PX) :][:high, :wide] = tile
    return grid
