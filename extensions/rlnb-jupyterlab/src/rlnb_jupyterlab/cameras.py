"""Pictures of the cameras of trainings, for pages that ask for one every second."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import rlnb

UNASKED_S = 6.0
"""After which a training has stopped to take pictures: whoever asks then begins anew."""
SILENT_S = 30.0
"""After the last picture: somebody else has asked for others meanwhile, and was answered instead."""


@dataclass(eq=False)
class Feed:
    """What is known of the pictures of one training."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    feed: Any = None
    png: bytes | None = None
    asked_s: float = 0.0
    came_s: float | None = None


class Cameras:
    """The cameras of the trainings that pages show; asked from any thread."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    def picture(self, key: str, run_of: Callable[[], rlnb.Run]) -> bytes | None:
        """Return the newest picture as PNG; None where there is none yet.

        Args:
            key: Of the run.
            run_of: Finds it.

        Raises:
            RlnbError: It shows none; why.
        """
        known = self._feeds.setdefault(key, Feed())
        with known.lock:
            now = time.monotonic()
            silent = known.came_s is not None and now - known.came_s > SILENT_S
            if known.feed is None or now - known.asked_s > UNASKED_S or silent:
                known.feed, known.png, known.came_s = run_of().camera_feed(), None, None
            known.asked_s = now
            known.feed.still_looking()
            if (shown := known.feed.newest()) is not None:
                known.png, known.came_s = _side_by_side(shown.pictures), now
            if known.feed.over():
                self._feeds.pop(key, None)
            return known.png


def _side_by_side(pictures: Any) -> bytes:
    """Return pictures as one PNG."""
    from PIL import Image

    whole = Image.new("RGB", (sum(p.width for p in pictures), max(p.height for p in pictures)))
    left = 0
    for picture in pictures:
        whole.paste(picture, (left, 0))
        left += picture.width
    buffer = io.BytesIO()
    whole.save(buffer, "PNG")
    return buffer.getvalue()
