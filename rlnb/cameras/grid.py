"""Camera frames as one picture: a grid of envs per camera and data type, with a scale or a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.cameras.frames import hidden_faults
from rlnb.configs.cameras import kind_of
from rlnb.display.pictures import (
    GAP_PX,
    PALETTE,
    READABLE_PX,
    WIDTH_PX,
    Tiling,
    beside,
    mosaic,
    red_green_blue,
    stacked,
    tiling,
)
from rlnb.hooks.registry import observe

if TYPE_CHECKING:
    from PIL import ImageDraw
    from PIL.Image import Image

    from rlnb.cameras.frames import Frames

TILE_PX = 192
"""Maximum length of the longer side of an enlarged frame. Frames are enlarged without smoothing."""
SINGLE_PX = 480
"""The same limit for a picture of one env."""
FONT_PX = 14
"""Size of all text. A cell that is narrower than a picture shrinks it."""
LEGEND_LINES = 12
"""Most lines of labels in a legend."""
LABEL_LENGTH = 40
"""Most characters of a label."""
_CAPTION_PX = 22
_MARGIN_PX = 8
_BAR_PX = 12
_BADGE_PX = 19
_WRONG = (178, 34, 34)
_RIGHT = (0, 128, 96)
_UNCERTAIN = (96, 96, 96)
_MISS = np.array([32, 32, 32], np.uint8)
"""Colour of depth pixels where nothing was hit."""
_BACKGROUND, _UNLABELLED = np.array([24, 24, 24], np.uint8), np.array([72, 72, 72], np.uint8)
"""Colours of segmentation ids 0 and 1, which no other id has."""
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
    custom: np.ndarray | None = observe("rlnb_colorize", frames=frames, data_type=data_type)
    if custom is not None:
        return custom
    if kind_of(data_type) == "depth":
        return _depth(frames[..., 0], *(range_m or depth_range_m(frames)))
    if kind_of(data_type) == "label" and frames.shape[-1] == 1:  # with more channels, the renderer has coloured it
        return _ids(frames[..., 0])
    if kind_of(data_type) == "normal":
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
    """Return the colour of a segmentation id. 0 is the background, and 1 is whatever has no label."""
    colour = _BACKGROUND if number <= 0 else _UNLABELLED if number == 1 else _PALETTE[(number - 2) % len(_PALETTE)]
    return int(colour[0]), int(colour[1]), int(colour[2])


def _ids(ids: np.ndarray) -> np.ndarray:
    numbers, inverse = np.unique(ids, return_inverse=True)
    return np.array([id_color(int(number)) for number in numbers], np.uint8)[inverse.reshape(ids.shape)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """A picture of one camera, and the places of the envs in it."""

    image: Image
    places: Tiling
    top: int
    """Height of what is above the envs, in pixels."""

    def env_at(self, x: float, y: float) -> int | None:
        """Return the index of the env at a point of the image; None outside of all envs.

        Args:
            x: Distance from the left edge, as a share of the width.
            y: Distance from the upper edge, as a share of the height.
        """
        return self.places.at(y * self.image.height - self.top, x * self.image.width)


def picture(preview: Frames, moment: int = -1) -> Image:
    """Return one picture of the mistakes in the task, and all cameras and data types, of a preview at one moment.

    The cameras and data types are in rows, so that the picture fits into a cell of a notebook.
    """
    from PIL import Image, ImageDraw

    columns = _columns(preview)
    rows: list[list[Image.Image]] = []
    for camera, types in preview.clip.items():
        for index, data_type in enumerate(types):
            needed = min(len(types), columns) if not index else 1  # a camera that fits into a row begins none in two
            if not rows or len(rows[-1]) + needed > columns:
                rows.append([])
            rows[-1].append(panel(preview, camera, data_type, moment, width_px=_room(columns)).image)
    below = stacked([beside(row, _MARGIN_PX) for row in rows], _MARGIN_PX)
    font = _font()
    badges = [
        (line, _WRONG if finding.level == "warning" else _UNCERTAIN)
        for finding in preview.task_findings
        for text in (finding.what, f"fix: {finding.fix}" if finding.fix else "")
        for line in _wrapped(text, below.width - 8, font)
    ]
    top = _BADGE_PX * len(badges)
    whole = Image.new("RGB", (below.width, top + below.height), "white")
    _draw_badges(ImageDraw.Draw(whole), badges, 0, below.width, font)
    whole.paste(below, (0, top))
    return whole


def _columns(preview: Frames) -> int:
    """Return the number of panels in a row: as many as leave the tiles readable, spread evenly over the rows."""
    sizes = [array.shape[3:1:-1] for types in preview.clip.values() for array in types.values()]

    def places(size: tuple[int, ...], width_px: int) -> Tiling:
        width, height = size
        return tiling(preview.num_envs, width, height, longest_px=TILE_PX, width_px=width_px)

    titles = (f"{camera}: {data_type}" for camera, types in preview.clip.items() for data_type in types)
    widest_px = max(_title_px(title, _font()) for title in titles)

    def readable(columns: int) -> bool:
        if columns > 1 and widest_px > _room(columns):
            return False
        pairs = [(places(size, WIDTH_PX), places(size, _room(columns))) for size in sizes]
        return all(
            part.columns == whole.columns and part.width >= min(READABLE_PX, whole.width) for whole, part in pairs
        )

    most = max(count for count in range(1, len(sizes) + 1) if readable(count))
    types, cameras = max(map(len, preview.clip.values())), len(preview.clip)
    if types > most:
        return math.ceil(types / math.ceil(types / most))
    return types * math.ceil(cameras / math.ceil(cameras / (most // types)))


def _room(columns: int) -> int:
    """Return the width of a panel in pixels, from the number of panels in a row."""
    return (WIDTH_PX + _MARGIN_PX) // columns - _MARGIN_PX


def _title_px(title: str, font: Any) -> int:
    """Return the least width of a panel with a title and the badge at its end, in pixels."""
    return max(150, math.ceil(font.getlength(title)) + 40)


def _font() -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=FONT_PX)


def _draw_badges(
    draw: ImageDraw.ImageDraw, badges: Sequence[tuple[str, tuple[int, int, int]]], top: int, width: int, font: Any
) -> None:
    """Draw a line of text on a colour for each finding."""
    for row, (line, colour) in enumerate(badges):
        y = top + row * _BADGE_PX
        draw.rectangle((0, y, width, y + _BADGE_PX - 1), fill=colour)
        draw.text((4, y + 1), line, fill="white", font=font)


def panel(
    preview: Frames,
    camera: str,
    data_type: str,
    moment: int = -1,
    env: int | None = None,
    width_px: int = WIDTH_PX,
) -> Panel:
    """Return a picture of one camera: title and findings, then the grid of envs, then the scale or legend.

    Args:
        preview: The preview.
        camera: Name of the camera.
        data_type: Isaac Lab's name of the output.
        moment: Index of the moment.
        env: Index of the only env to show, in all of its pixels; None shows all envs.
        width_px: Largest width of the grid of envs.
    """
    from PIL import Image, ImageDraw

    font = _font()
    clip = preview.clip[camera][data_type]
    frames = clip[moment] if env is None else clip[moment][env : env + 1]
    kind = kind_of(data_type)
    range_m = depth_range_m(clip) if kind == "depth" else (0.0, 1.0)  # of all moments, so a video does not flicker
    count, rows, columns = frames.shape[:3]
    longest_px, width_px = (TILE_PX, width_px) if env is None else (SINGLE_PX, max(width_px, columns))
    places = tiling(count, columns, rows, longest_px=longest_px, width_px=width_px)
    smooth = kind != "label"
    grid = Image.fromarray(mosaic(colorize(frames, data_type, range_m), places, smooth=smooth))
    title = f"{camera}: {data_type}"
    width = max(grid.width, _title_px(title, font))
    badges = _badges(preview, camera, data_type, width, font)
    names = preview.labels.get(f"{camera}/{data_type}", {})
    legend = Legend.of([(id, text) for id, text in sorted(names.items()) if (clip == id).any()], width, font)
    top = _CAPTION_PX + _BADGE_PX * len(badges)
    footer = _CAPTION_PX * (legend.rows or (kind == "depth"))
    whole = Image.new("RGB", (width, top + grid.height + footer + GAP_PX), "white")
    draw = ImageDraw.Draw(whole)
    draw.text((0, 2), title, fill="black", font=font)
    _draw_badges(draw, badges, _CAPTION_PX, width, font)
    if not any(colour == _WRONG for _, colour in badges):
        _ok(draw, width, font)
    whole.paste(grid, (0, top))
    below = top + grid.height + GAP_PX
    legend.draw(draw, below, font)
    if kind == "depth":
        _scale(whole, below, *range_m, font)
    return Panel(image=whole, places=places, top=top)


def _badges(
    preview: Frames, camera: str, data_type: str, width: int, font: Any
) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the lines of text about faults in a camera's frames, each with its colour."""
    findings = [finding for finding in preview.findings if (finding.camera, finding.data_type) == (camera, data_type)]
    badges = [(line, _WRONG) for finding in findings for line in _wrapped(str(finding), width - 8, font)]
    if camera in preview.noisy and (faults := hidden_faults(data_type)):
        text = f"noise can hide: {', '.join(faults)}"
        badges += [(line, _UNCERTAIN) for line in _wrapped(text, width - 8, font)]
    return badges


@dataclass(frozen=True, kw_only=True, slots=True)
class Legend:
    """The labels of a segmentation, in columns."""

    entries: Sequence[tuple[int, str]]
    """Ids and the text of their labels, column by column."""
    more: int
    """Number of labels that are left out."""
    rows: int
    """Number of lines, with the one that says how many labels are left out."""
    column_px: int

    @classmethod
    def of(cls, labels: Sequence[tuple[int, str]], width: int, font: Any) -> Legend:
        """Return a legend that is no wider than a picture if a label is not.

        Args:
            labels: Ids and labels.
            width: Width of the picture in pixels.
            font: Font of the text.
        """
        entries = [(number, _shortened(text)) for number, text in labels]
        column_px = max((math.ceil(font.getlength(text)) for _, text in entries), default=0) + _BAR_PX + 17
        columns = max(1, width // column_px)
        lines = min(LEGEND_LINES, math.ceil(len(entries) / columns))
        more = max(0, len(entries) - lines * columns)
        return cls(entries=entries[: lines * columns], more=more, rows=lines + bool(more), column_px=column_px)

    def draw(self, draw: ImageDraw.ImageDraw, top: int, font: Any) -> None:
        """Draw the legend below ``top``, a row of pixels."""
        lines = self.rows - bool(self.more)
        for place, (number, text) in enumerate(self.entries):
            column, line = divmod(place, lines)
            x, y = column * self.column_px, top + line * _CAPTION_PX
            draw.rectangle((x, y + 4, x + _BAR_PX, y + 4 + _BAR_PX), fill=id_color(number))
            draw.text((x + _BAR_PX + 5, y + 2), text, fill="black", font=font)
        if self.more:
            draw.text((0, top + lines * _CAPTION_PX + 2), f"and {self.more} more", fill="black", font=font)


def _shortened(text: str) -> str:
    """Return a label of at most :data:`LABEL_LENGTH` characters. The end of a path says more than its beginning."""
    if len(text) <= LABEL_LENGTH:
        return text
    return f"…{text[1 - LABEL_LENGTH :]}" if text.startswith("/") else f"{text[: LABEL_LENGTH - 1]}…"


def _ok(draw: ImageDraw.ImageDraw, width: int, font: Any) -> None:
    """Draw the badge of a camera without findings at the end of the title."""
    draw.rounded_rectangle((width - 30, 2, width - 1, _CAPTION_PX - 3), radius=4, fill=_RIGHT)
    draw.text((width - 24, 2), "ok", fill="white", font=font)


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
    start, end = 56, max(70, panel.width - 60)
    ramp = _depth(np.linspace(near_m, far_m, end - start, dtype=np.float32)[None], near_m, far_m)
    panel.paste(Image.fromarray(np.repeat(ramp, _BAR_PX, axis=0)), (start, top + 3))
    draw.text((0, top + 2), left_text, fill="black", font=font)
    draw.text((end + 4, top + 2), right_text, fill="black", font=font)


def tiles(frames: np.ndarray, data_type: str) -> np.ndarray:
    """Return camera frames as one picture without title or legend. Shape (height, width, 3), uint8."""
    count, height, width = frames.shape[:3]
    places = tiling(count, width, height, longest_px=TILE_PX)
    return mosaic(colorize(frames, data_type), places, smooth=kind_of(data_type) != "label")
