"""Pictures, films and the viewer of a preview that needs no simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.cameras.grid import panel
from rlnb.cameras.preview import Preview, read
from rlnb.display.video import Mp4
from rlnb.tasks.requests import Clip

TIMES, ENVS, HEIGHT, WIDTH = 3, (0, 2, 5), 24, 32


def taken(tmp_path: Path, **planted: Any) -> Preview:
    random = np.random.default_rng(0)
    shape = (TIMES, len(ENVS), HEIGHT, WIDTH)
    arrays = {
        "state": np.arange(TIMES * len(ENVS), dtype=np.float32).reshape(TIMES, len(ENVS), 1),
        "wrist/rgb": random.integers(0, 255, (*shape, 3), dtype=np.uint8),
        "wrist/depth": random.uniform(1.0, 4.0, (*shape, 1)).astype(np.float32),
        "front/semantic_segmentation": random.integers(0, 3, (*shape, 1), dtype=np.int32),
        **planted,
    }
    np.savez(tmp_path / "frames.npz", **arrays)
    clip = Clip(
        file=str(tmp_path / "frames.npz"),
        times_s=(0.0, 0.1, 0.2),
        labels={"front/semantic_segmentation": {"0": "BACKGROUND", "1": "cube", "2": "<hand>"}},
        ranges_m={"wrist": (0.1, 10.0), "front": (0.1, 10.0)},
        added=False,
        seconds={"make": 0.1, "first": 0.2, "total": 0.3},
    )
    return read("T", 10, ENVS, clip)


def test_frames_are_those_of_the_last_moment(tmp_path: Path) -> None:
    shown = taken(tmp_path)
    assert shown.clip["wrist"]["rgb"].shape == (TIMES, len(ENVS), HEIGHT, WIDTH, 3)
    assert (shown.frames["wrist"]["rgb"] == shown.clip["wrist"]["rgb"][-1]).all()
    assert shown.labels["front/semantic_segmentation"][2] == "<hand>"
    assert repr(shown) == "Preview('T', env 0, 2, 5, wrist: rgb, depth; front: semantic_segmentation)"


def test_what_is_wrong_stands_in_the_repr_and_on_the_picture(tmp_path: Path) -> None:
    good = taken(tmp_path)
    blank = np.full((TIMES, len(ENVS), HEIGHT, WIDTH, 3), 7, np.uint8)
    bad = taken(tmp_path, **{"wrist/rgb": blank})
    assert "wrist rgb: blank in env 0, 2, 5: one colour (7, 7, 7)" in repr(bad)
    assert _share(panel(good, "wrist", "rgb"), (178, 34, 34)) == 0
    assert _share(panel(bad, "wrist", "rgb"), (178, 34, 34)) > 0.01
    assert _share(panel(good, "wrist", "rgb"), (0, 128, 96)) > 0
    assert _share(panel(bad, "wrist", "rgb"), (0, 128, 96)) == 0


def _share(picture: Image.Image, colour: tuple[int, int, int]) -> float:
    return float((np.asarray(picture) == colour).all(axis=-1).mean())


def test_one_env_is_shown_larger_than_in_the_grid(tmp_path: Path) -> None:
    shown = taken(tmp_path)
    tile = np.asarray(shown.clip["wrist"]["rgb"][1, 2])
    single = np.asarray(panel(shown, "wrist", "rgb", moment=1, env=2))
    factor = single.shape[1] // WIDTH
    assert factor > 10
    below_title = single[20 : 20 + HEIGHT * factor : factor, ::factor][:, :WIDTH]
    assert (below_title == tile).all()


def test_films_hold_every_moment_at_the_speed_of_the_task(tmp_path: Path) -> None:
    shown = taken(tmp_path)
    gif = Image.open(shown.save(tmp_path / "film.gif"))
    assert (gif.n_frames, gif.info["duration"]) == (TIMES, 100)
    assert Image.open(shown.save(tmp_path / "still.png")).size == shown.image.size
    av = pytest.importorskip("av")
    with av.open(str(shown.save(tmp_path / "film.mp4"))) as film:
        (stream,) = film.streams.video
        assert float(stream.average_rate) == pytest.approx(10.0)
        assert len(list(film.decode(stream))) == TIMES


def test_a_film_of_odd_size_is_written_too(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    film = Mp4(tmp_path / "odd.mp4", fps=5)
    film.add(np.zeros((241, 321, 3), np.uint8))
    film.close()
    with av.open(str(tmp_path / "odd.mp4")) as read_back:
        assert (read_back.streams.video[0].height, read_back.streams.video[0].width) == (242, 322)


def test_another_suffix_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"film\.webm.*\.png, \.gif or \.mp4"):
        taken(tmp_path).save(tmp_path / "film.webm")


def test_the_viewer_shows_what_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = taken(tmp_path)
    assert shown.browse() is shown, "nobody could move a slider of a report"
    monkeypatch.setattr(rlnb.options, "display", "live")
    controls, sliders, image = shown.browse().children
    camera, data_type = controls.children
    env, time = sliders.children
    first = bytes(image.value)
    assert first.startswith(b"\x89PNG")
    assert time.index == TIMES - 1
    env.value = 5
    single = bytes(image.value)
    assert single != first
    time.index = 0
    assert bytes(image.value) != single
    data_type.value = "depth"
    of_depth = bytes(image.value)
    camera.value = "front"
    assert data_type.value == "semantic_segmentation"
    assert bytes(image.value) not in (of_depth, first)
