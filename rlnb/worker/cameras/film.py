"""The film of an evaluation: a camera's view of the first envs, tiled, as MP4."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.display.pictures import tiled
from rlnb.display.video import Mp4
from rlnb.storage import entries
from rlnb.worker.cameras.rig import Plan

ENVS = 4
"""Envs in the picture."""
FPS = 30.0
"""Target frame rate. A film plays in real time and has at most one frame per env step."""
LONGEST_S = 60.0


class Film:
    """Takes frames while a policy acts, and writes them as MP4.

    Args:
        path: The file, ``.mp4``.
        camera: Name of one of the task's cameras; None for the first, or for an added one if the task has none.
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
        """Take a frame of the current state, if one is due."""
        if self._steps % self._every == 0 and self._steps < self._limit:
            self.plan.follow(env)
            self._file.add(tiled(self.plan.read(env, self._camera, "rgb")[:ENVS].cpu().numpy()))
        self._steps += 1

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """End the film with the block. If the block fails, there is no film."""
        try:
            yield
            self._file.close()
        except BaseException:
            with contextlib.suppress(Exception):  # frames that the codec still holds
                self._file.close()
            entries.remove(self.path)
            raise
