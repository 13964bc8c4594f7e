"""Pictures from the cameras of trainings, for pages that request one every second."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import rlnb

UNASKED_S = 6.0
"""Seconds without a request after which a training no longer takes pictures: the next request opens a new feed."""
SILENT_S = 30.0
"""Seconds without a picture after which a feed is opened again: a training serves only the newest request, which may
come from a notebook."""


@dataclass(eq=False)
class Feed:
    """The pictures of one training."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    source: Any = None
    png: bytes | None = None
    request_s: float = field(default_factory=time.monotonic)
    picture_s: float | None = None


class Cameras:
    """The cameras of the trainings that pages show; safe to use from any thread."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    def picture(self, key: str, run_of: Callable[[], rlnb.Run]) -> bytes | None:
        """Return the newest picture as PNG; None if there is none yet.

        Args:
            key: Key of the run.
            run_of: Returns the run.

        Raises:
            RlnbError: The run has no pictures; the message gives the reason.
        """
        self._forget_others(key)
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

    def _forget_others(self, key: str) -> None:
        """Forget the feeds that no page requests any more: each holds a picture, and its run with all curves."""
        now = time.monotonic()
        for other, feed in [*self._feeds.items()]:
            if other != key and now - feed.request_s > UNASKED_S:
                self._feeds.pop(other, None)


def _side_by_side(pictures: Any) -> bytes:
    """Return pictures side by side as one PNG."""
    from PIL import Image

    whole = Image.new("RGB", (sum(p.width for p in pictures), max(p.height for p in pictures)))
    x = 0
    for picture in pictures:
        whole.paste(picture, (x, 0))
        x += picture.width
    buffer = io.BytesIO()
    whole.save(buffer, "PNG")
    return buffer.getvalue()
