"""Camera frames as one picture: a grid of envs per camera and data type, with a scale or a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb import plugins
from rlnb.cameras.inspector import hidden_faults
from rlnb.display.pictures import GAP_PX, PALETTE, mosaic, red_green_blue
from rlnb.spec import DEPTH

if TYPE_CHECKING:
    from PIL import ImageDraw
    from PIL.Image import Image

    from rlnb.cameras.frames import Frames

TILE_PX = 192
"""Maximum length of the longer side of an enlarged frame. Frames are enlarged without smoothing."""
SINGLE_PX = 480
"""The same limit for a picture of one env."""
_CAPTION_PX = 20
_MARGIN_PX = 8
_BAR_PX = 12
_BADGE_PX = 16
_WRONG = (178, 34, 34)
_RIGHT = (0, 128, 96)
_UNCERTAIN = (96, 96, 96)
_MISS = np.array([32, 32, 32], np.uint8)
"""Colour of depth pixels where nothing was hit."""
_BACKGROUND = np.array([24, 24, 24], np.uint8)
_PALETTE = np.array([red_green_blue(PALETTE[place]) for place in (4, 5, 2, 7, 0, 1, 3)], np.uint8)
"""Colours of segmentation ids: bright ones first and no black, because the background is dark."""


def colorize(frames: np.ndarray, data_type: str, range_m: tuple[float, float] | None = None) -> np.ndarray:
    """Return RGB pictures of camera frames. A plugin's ``rlnb_colorize`` takes precedence.

    Args:
        frames: Camera output. Shape (num_envs, height, width, channels).
        data_type: Isaac Lab's name of the output.
        range_m: Depths of the first and the last colour, in metres; None is the range of these frames.

    Returns:
        Pictures. Shape (num_envs, height, width, 3), uint8.
    """
    custom = plugins.manager().hook.rlnb_colorize(frames=frames, data_type=data_type)
    if custom is not None:
        return custom
    if data_type in DEPTH:
        return _depth(frames[..., 0], *(range_m or depth_range_m(frames)))
    if "segmentation" in data_type and frames.shape[-1] == 1:  # with more channels, the renderer has coloured it
        return _ids(frames[..., 0])
    if data_type == "normals":
        return ((np.clip(np.nan_to_num(frames[..., :3]), -1.0, 1.0) + 1.0) * 127.5).astype(np.uint8)
    return frames[..., :3].astype(np.uint8)


def depth_range_m(frames: np.ndarray) -> tuple[float, float]:
    """Return the nearest and farthest depth of pixels that hit something; (0, 1) if none did."""
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
    numbers, inverse = np.unique(ids, return_inverse=True)
    return np.array([id_color(int(number)) for number in numbers], np.uint8)[inverse.reshape(ids.shape)]


def picture(preview: Frames, moment: int = -1) -> Image:
    """Return one picture of the mistakes in the task, and all cameras and data types, of a preview at one moment."""
    from PIL import Image, ImageDraw, ImageFont

    panels = [
        panel(preview, camera, data_type, moment) for camera, types in preview.clip.items() for data_type in types
    ]
    width = sum(one.width for one in panels) + _MARGIN_PX * (len(panels) - 1)
    font = ImageFont.load_default(size=12)
    badges = [
        (line, _WRONG if finding.level == "warning" else _UNCERTAIN)
        for finding in preview.task_findings
        for line in _wrapped(finding.what, width - 8, font)
    ]
    top = _BADGE_PX * len(badges)
    whole = Image.new("RGB", (width, top + max(one.height for one in panels)), "white")
    _draw_badges(ImageDraw.Draw(whole), badges, 0, width, font)
    x = 0
    for one in panels:
        whole.paste(one, (x, top))
        x += one.width + _MARGIN_PX
    return whole


def _draw_badges(
    draw: ImageDraw.ImageDraw, badges: Sequence[tuple[str, tuple[int, int, int]]], top: int, width: int, font: Any
) -> None:
    """Draw a line of text on a colour for each finding."""
    for row, (line, colour) in enumerate(badges):
        y = top + row * _BADGE_PX
        draw.rectangle((0, y, width, y + _BADGE_PX - 1), fill=colour)
        draw.text((4, y + 1), line, fill="white", font=font)


def panel(preview: Frames, camera: str, data_type: str, moment: int = -1, env: int | None = None) -> Image:
    """Return a picture of one camera: title and findings, then the grid of envs, then the scale or legend.

    Args:
        preview: The preview.
        camera: Name of the camera.
        data_type: Isaac Lab's name of the output.
        moment: Index of the moment.
        env: Index of the only env to show; None shows all envs.
    """
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=12)
    clip = preview.clip[camera][data_type]
    frames = clip[moment] if env is None else clip[moment][env : env + 1]
    range_m = depth_range_m(clip) if data_type in DEPTH else (0.0, 1.0)  # of all moments, so a video does not flicker
    longest_px = TILE_PX if env is None else SINGLE_PX
    grid = Image.fromarray(mosaic(colorize(frames, data_type, range_m), longest_px))
    title = f"{camera}: {data_type}"
    width = max(grid.width, 150, math.ceil(font.getlength(title)) + 34)
    findings = [finding for finding in preview.findings if (finding.camera, finding.data_type) == (camera, data_type)]
    badges = [(line, _WRONG) for finding in findings for line in _wrapped(str(finding), width - 8, font)]
    if camera in preview.noisy and (faults := hidden_faults(data_type)):
        text = f"noise can hide: {', '.join(faults)}"
        badges += [(line, _UNCERTAIN) for line in _wrapped(text, width - 8, font)]
    names = preview.labels.get(f"{camera}/{data_type}", {})
    legend = [(number, text) for number, text in sorted(names.items()) if (clip == number).any()]  # of all moments
    footer = _CAPTION_PX * (len(legend) if legend else 1 if data_type in DEPTH else 0)
    top = _CAPTION_PX + _BADGE_PX * len(badges)
    whole = Image.new("RGB", (width, top + grid.height + footer + GAP_PX), "white")
    draw = ImageDraw.Draw(whole)
    draw.text((0, 2), title, fill="black", font=font)
    _draw_badges(draw, badges, _CAPTION_PX, width, font)
    if not findings:
        _ok(draw, width, font)
    whole.paste(grid, (0, top))
    below = top + grid.height + GAP_PX
    for row, (number, text) in enumerate(legend):
        y = below + row * _CAPTION_PX
        draw.rectangle((0, y + 3, _BAR_PX, y + 3 + _BAR_PX), fill=id_color(number))
        draw.text((_BAR_PX + 5, y + 2), text[:40], fill="black", font=font)
    if data_type in DEPTH:
        _scale(whole, below, *range_m, font)
    return whole


def _ok(draw: ImageDraw.ImageDraw, width: int, font: Any) -> None:
    """Draw the badge of a camera without findings at the end of the title."""
    draw.rounded_rectangle((width - 26, 2, width - 1, _CAPTION_PX - 3), radius=4, fill=_RIGHT)
    draw.text((width - 20, 2), "ok", fill="white", font=font)


def _wrapped(text: str, width_px: int, font: Any) -> list[str]:
    """Return a text wrapped into lines of at most ``width_px`` pixels."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width_px:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _scale(panel: Image, top: int, near_m: float, far_m: float, font: Any) -> None:
    from PIL import Image, ImageDraw

    draw = ImageDraw.Draw(panel)
    left_text, right_text = f"{near_m:.2f} m", f"{far_m:.2f} m"
    start, end = 48, max(60, panel.width - 52)
    ramp = _depth(np.linspace(near_m, far_m, end - start, dtype=np.float32)[None], near_m, far_m)
    panel.paste(Image.fromarray(np.repeat(ramp, _BAR_PX, axis=0)), (start, top + 3))
    draw.text((0, top + 2), left_text, fill="black", font=font)
    draw.text((end + 4, top + 2), right_text, fill="black", font=font)


def tiles(frames: np.ndarray, data_type: str) -> np.ndarray:
    """Return camera frames as one picture without title or legend. Shape (height, width, 3), uint8."""
    return mosaic(colorize(frames, data_type), TILE_PX)
