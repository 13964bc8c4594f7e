"""A preview as text, pictures and videos, without a simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.cameras.preview import Preview
from rlnb.protocol.requests import TaskFinding

TIMES = 3
Take = Callable[..., Preview]


def test_videos_have_every_moment_at_the_speed_of_the_task(tmp_path: Path, take: Take) -> None:
    preview = take()
    gif = Image.open(preview.save(tmp_path / "film.gif"))
    assert (gif.n_frames, gif.info["duration"]) == (TIMES, 100)
    assert Image.open(preview.save(tmp_path / "still.png")).size == preview.image.size
    av = pytest.importorskip("av")
    with av.open(str(preview.save(tmp_path / "film.mp4"))) as film:
        (stream,) = film.streams.video
        assert float(stream.average_rate) == pytest.approx(10.0)
        assert len(list(film.decode(stream))) == TIMES


def test_another_suffix_is_refused_with_the_valid_ones(tmp_path: Path, take: Take) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"film\.webm.*\.png, \.gif or \.mp4"):
        take().save(tmp_path / "film.webm")


def test_faults_are_part_of_the_repr(take: Take) -> None:
    assert repr(take()) == "Preview('T', env 0, 2, 5, wrist: rgb, depth; front: semantic_segmentation)"
    bad = take(**{"wrist/rgb": np.full((3, 3, 24, 32, 3), 7, np.uint8)})
    assert "wrist rgb: blank in env 0, 2, 5: all pixels have one colour (7, 7, 7)" in repr(bad)


def test_mistakes_of_the_task_are_part_of_the_repr(take: Take) -> None:
    found = TaskFinding(level="warning", what="The reward is nan in step 1.", fix="Look at it.")
    preview = take(findings=(found,))
    assert preview.task_findings == (found,)
    assert "\n  warning: The reward is nan in step 1. Look at it." in repr(preview)


def test_the_repr_says_which_faults_noise_can_hide(take: Take) -> None:
    text = repr(take(noisy=("wrist", "front")))
    assert text.splitlines()[1:] == ["  wrist rgb: noise can hide: stale, duplicate"], "ids and depths have no noise"


def test_an_interim_clip_is_not_inspected(take: Take) -> None:
    bad = take(inspected=False, **{"wrist/rgb": np.full((3, 3, 24, 32, 3), 7, np.uint8)})
    assert bad.findings == ()
