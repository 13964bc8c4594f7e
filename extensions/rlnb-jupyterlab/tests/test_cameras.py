"""Pictures of a training from which a notebook requests pictures too."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rlnb_jupyterlab import cameras


class Training:
    """A training that takes a picture for the newest request only."""

    requests = 0

    def __init__(self) -> None:
        Training.requests += 1
        self.number, self.frames = Training.requests, 0

    def camera_feed(self) -> Training:
        """Return a new feed."""
        return Training()

    def still_looking(self) -> None:
        """Do nothing: this feed needs no viewer."""

    def over(self) -> bool:
        """Return False: the training goes on."""
        return False

    def newest(self) -> Any:
        """Return a picture, or None if there was a newer request."""
        if self.number != Training.requests:
            return None
        return SimpleNamespace(pictures=[Image.fromarray(np.full((4, 4, 3), self.number, np.uint8))])


def test_pictures_come_again_after_a_notebook_has_requested_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameras, "SILENT_S", 2.0)
    feeds, training = cameras.Cameras(), Training()
    first = feeds.picture("key", lambda: training)
    training.camera_feed()  # a notebook's request
    assert feeds.picture("key", lambda: training) == first, "the last picture stays"
    time.sleep(2.1)
    assert feeds.picture("key", lambda: training) not in (None, first)


def test_a_page_that_comes_back_gets_no_old_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameras, "UNASKED_S", 0.1)
    feeds, training = cameras.Cameras(), Training()
    first = feeds.picture("key", lambda: training)
    time.sleep(0.2)
    assert feeds.picture("key", lambda: training) != first


def test_nothing_is_kept_of_a_training_that_no_page_shows_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameras, "UNASKED_S", 0.1)
    feeds = cameras.Cameras()
    for key in ("first", "second", "third"):
        assert feeds.picture(key, Training) is not None
        time.sleep(0.2)
    assert [*feeds._feeds] == ["third"]
