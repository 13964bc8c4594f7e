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
"""Seconds without a request after which a training has stopped to take pictures: the next request begins anew."""
SILENT_S = 30.0
"""Seconds without a picture after which somebody else has asked for others, and was answered instead."""


@dataclass(eq=False)
class Feed:
    """The pictures of one training."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    source: Any = None
    png: bytes | None = None
    request_s: float = 0.0
    picture_s: float | None = None


class Cameras:
    """The cameras of the trainings that pages show; used from any thread."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    def picture(self, key: str, run_of: Callable[[], rlnb.Run]) -> bytes | None:
        """Return the newest picture as PNG; None where there is none yet.

        Args:
            key: Of the run.
            run_of: Finds it.

        Raises:
            RlnbError: It shows none; the message says why.
        """
        feed = self._feeds.setdefault(key, Feed())
        with feed.lock:
            now = time.monotonic()
            silent = feed.picture_s is not None and now - feed.picture_s > SILENT_S
            if feed.source is None or now - feed.request_s > UNASKED_S or silent:
                feed.source, feed.png, feed.picture_s = run_of().camera_feed(), None, None
            feed.request_s = now
            feed.source.still_looking()
            if (frames := feed.source.newest()) is not None:
                feed.png, feed.picture_s = _side_by_side(frames.pictures), now
            if feed.source.over():
                self._feeds.pop(key, None)
            return feed.png


def _side_by_side(pictures: Any) -> bytes:
    """Return pictures as one PNG."""
    from PIL import Image

    whole = Image.new("RGB", (sum(p.width for p in pictures), max(p.height for p in pictures)))
    x = 0
    for picture in pictures:
        whole.paste(picture, (x, 0))
        x += picture.width
    buffer = io.BytesIO()
    whole.save(buffer, "PNG")
    return buffer.getvalue()
