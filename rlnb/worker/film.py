"""A film of an evaluation: what a camera sees of the first envs, tiled, as MP4."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.worker.preview import Plan, aim

ENVS = 4
"""Envs in the picture."""
FPS = 30.0
"""Frames per second at most; a film is as slow as the task."""
LONGEST_S = 60.0
LEAST_WIDTH = 240
"""Pixels of a tile; smaller cameras are enlarged by whole factors."""


class Film:
    """Takes frames while a policy acts, and writes them as H.264.

    Args:
        path: The file, ``.mp4``.
        camera: Which of the task's cameras; None is its first, or one that is added to its scene.
        size: Width and height of an added camera, in pixels.

    Raises:
        RlnbError: PyAV (https://pyav.basswood-io.com), which writes the file, is not installed.
    """

    def __init__(self, path: Path, camera: str | None, size: tuple[int, int] = (320, 240)) -> None:
        try:
            import av
        except ImportError as exc:
            raise RlnbError("A film is written by PyAV, which the worker's interpreter lacks: pip install av") from exc
        self._av, self.path = av, path
        self.plan = Plan([camera] if camera else None, ["rgb"], size)
        """Adds the camera to the env's config."""
        self._container: Any = None
        self._stream: Any = None
        self._steps = self._every = 0

    def begin(self, env: Any) -> None:
        """Set the camera up in an env that was just reset."""
        if self.plan.added:
            aim(env)
        self._every = max(1, round(1.0 / (FPS * env.step_dt)))
        self._rate = Fraction(1.0 / (self._every * env.step_dt)).limit_denominator(1000)
        self._limit = int(LONGEST_S / env.step_dt)
        self._sensor = next(iter(self.plan.sensors.values()))[0]

    def take(self, env: Any) -> None:
        """Take a frame of the present state, if one is due."""
        due = self._steps % self._every == 0 and self._steps < self._limit
        self._steps += 1
        if not due:
            return
        picture = tiled(env.scene.sensors[self._sensor].data.output["rgb"].torch[:ENVS].cpu().numpy())
        if self._container is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._container = self._av.open(str(self.path), "w", format="mp4")
            self._stream = self._container.add_stream("libx264", rate=self._rate)
            self._stream.height, self._stream.width = picture.shape[:2]
            self._stream.pix_fmt = "yuv420p"  # what browsers play
        self._container.mux(self._stream.encode(self._av.VideoFrame.from_ndarray(picture, format="rgb24")))

    def end(self) -> None:
        """Write what is left and close the file."""
        if self._container is not None:
            self._container.mux(self._stream.encode())
            self._container.close()


def tiled(images: Any) -> Any:
    """Return pictures as one.

    Args:
        images: Shape (n, height, width, channels), channels at least 3, uint8.

    Returns:
        Shape (rows * height, columns * width, 3), uint8, both even as the codec wants them; small ones enlarged.
    """
    import numpy as np

    factor = max(1, math.ceil(LEAST_WIDTH / images.shape[2]))
    images = images[..., :3].repeat(factor, axis=1).repeat(factor, axis=2)
    count, height, width, _ = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    whole = np.zeros((rows * height + rows * height % 2, columns * width + columns * width % 2, 3), dtype=np.uint8)
    for number, image in enumerate(images):
        top, left = number // columns * height, number % columns * width
        whole[top : top + height, left : left + width] = image
    return whole
