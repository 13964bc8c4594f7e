"""A film of an evaluation: what a camera sees of the first envs, tiled, as MP4."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rlnb.video import Mp4
from rlnb.worker.cameras import Plan

ENVS = 4
"""Envs in the picture."""
FPS = 30.0
"""Frames per second at most; a film is as slow as the task."""
LONGEST_S = 60.0
LEAST_WIDTH = 240
"""Pixels of a tile; smaller cameras are enlarged by whole factors."""


class Film:
    """Takes frames while a policy acts, and writes them as MP4.

    Args:
        path: The file, ``.mp4``.
        camera: Which of the task's cameras; None is its first, or one that is added to its scene.
        size: Width and height of an added camera, in pixels.
    """

    def __init__(self, path: Path, camera: str | None, size: tuple[int, int] = (320, 240)) -> None:
        self.path = path
        self.plan = Plan([camera] if camera else None, ["rgb"], size)
        """Adds the camera to the env's config."""
        self._file = Mp4(path, FPS)
        self._steps = self._every = 0

    def begin(self, env: Any) -> None:
        """Set the camera up in an env that was just reset."""
        self.plan.begin(env)
        self._every = max(1, round(1.0 / (FPS * env.step_dt)))
        self._file.fps = 1.0 / (self._every * env.step_dt)
        self._limit = int(LONGEST_S / env.step_dt)
        self._camera = next(iter(self.plan.cameras))

    def take(self, env: Any) -> None:
        """Take a frame of the present state, if one is due."""
        if self._steps % self._every == 0 and self._steps < self._limit:
            self.plan.follow(env)
            self._file.add(tiled(self.plan.read(env, self._camera, "rgb")[:ENVS].cpu().numpy()))
        self._steps += 1

    def end(self) -> None:
        """Write what is left and close the file."""
        self._file.close()


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
