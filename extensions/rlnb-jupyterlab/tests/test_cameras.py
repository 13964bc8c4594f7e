"""Pictures of a training whose camera others ask for too."""

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

    asked = 0

    def __init__(self) -> None:
        Training.asked += 1
        self.number, self.frames = Training.asked, 0

    def camera_feed(self) -> Training:
        """Return it."""
        return Training()

    def still_looking(self) -> None:
        """Hear that somebody looks."""

    def over(self) -> bool:
        """Return that it goes on."""
        return False

    def newest(self) -> Any:
        """Return a picture, unless somebody else has asked since."""
        if self.number != Training.asked:
            return None
        return SimpleNamespace(pictures=[Image.fromarray(np.full((4, 4, 3), self.number, np.uint8))])


def test_pictures_come_again_after_somebody_else_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameras, "SILENT_S", 2.0)
    found, training = cameras.Cameras(), Training()
    first = found.picture("key", lambda: training)
    training.camera_feed()  # a notebook asks
    assert found.picture("key", lambda: training) == first, "the last one stays"
    time.sleep(2.1)
    assert found.picture("key", lambda: training) not in (None, first)


def test_a_page_that_comes_back_is_not_shown_what_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameras, "UNASKED_S", 0.1)
    found, training = cameras.Cameras(), Training()
    first = found.picture("key", lambda: training)
    time.sleep(0.2)
    assert found.picture("key", lambda: training) != first
