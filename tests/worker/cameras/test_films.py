"""Tests of rlnb.worker.cameras.films: the times on a stand-in for an env, the pictures in real Isaac Lab on a CPU."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.records.video import Video
from rlnb.worker.cameras import films
from rlnb.worker.cameras.films import FEWEST, SHARE, Films

pytest.importorskip("av")
HORIZON, STEP_DT = 10, 0.02


class Clock:
    """A clock that a test sets forward."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(films, "time", clock)
    return clock


def filmed(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, *, steps: int, step_s: float, picture_s: float
) -> tuple[dict[str, int], Films]:
    """Step an env that takes some time; return the frames of each film by name, and the films."""
    counts: dict[str, int] = {}
    is_new = True

    def picture() -> Any:
        nonlocal is_new
        clock.now += picture_s * is_new  # the first picture after a step may cost more than a second one
        is_new = False
        return np.random.default_rng(0).integers(0, 255, (4, 12, 16, 3), dtype=np.uint8)

    class Mp4(films.Mp4):
        def add(self, picture: np.ndarray) -> None:
            name = self._path.name.removesuffix(".part.mp4")
            counts[name] = counts.get(name, 0) + 1
            super().add(picture)

    monkeypatch.setattr(films, "Mp4", Mp4)
    monkeypatch.setattr(films, "Spectator", lambda env, envs, size: SimpleNamespace(picture=picture))

    def step(action: int) -> int:
        nonlocal is_new
        clock.now += step_s
        is_new = True
        return action

    env = SimpleNamespace(step=step, step_dt=STEP_DT, device="cpu", num_envs=4)
    several = Films(env, lambda iteration: folder / f"{iteration}.mp4", 50, lambda step: step // HORIZON)
    several.attach()
    for number in range(steps):
        assert env.step(number) == number
    several.close()
    return counts, several


def test_a_film_begins_every_few_iterations(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, _ = filmed(tmp_path, clock, monkeypatch, steps=1700, step_s=1.0, picture_s=0.01)
    assert counts == {"50": 60, "100": 60, "150": 60}
    video = Video(tmp_path / "50.mp4")
    assert video.still() is not None
    import av

    with av.open(str(video.path)) as film:
        stream = film.streams.video[0]
        assert stream.frames == 60
        assert float(stream.average_rate or 0) == pytest.approx(1 / (3 * STEP_DT), rel=0.01), "in real time"


@pytest.mark.parametrize("picture_s", [0.001, 0.05, 0.2, 0.5, 3.0])
def test_all_films_take_a_small_share_of_the_time(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, picture_s: float
) -> None:
    counts, _ = filmed(tmp_path, clock, monkeypatch, steps=10_000, step_s=0.05, picture_s=picture_s)
    assert sum(counts.values()) * picture_s <= SHARE * clock.now + 3 * picture_s
    assert all(count >= FEWEST for count in counts.values())
    assert (len(counts) > 0) == (picture_s < 1.0)


def test_a_film_that_fails_does_not_end_the_training(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING):
        counts, _ = filmed(tmp_path / "file", clock, monkeypatch, steps=2000, step_s=1.0, picture_s=0.01)
    assert counts == {"50": 1}
    assert caplog.text.count("This training is not filmed any more.") == 1


def test_a_disk_that_becomes_full_does_not_end_the_training(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def close(film: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(films.Mp4, "close", close)
    with caplog.at_level(logging.WARNING):
        counts, _ = filmed(tmp_path, clock, monkeypatch, steps=1200, step_s=1.0, picture_s=0.01)
    assert counts == {"50": 60}
    assert caplog.text.count("No space left on device") == 1
    assert not (tmp_path / "50.mp4").exists()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        filmed(tmp_path, clock, monkeypatch, steps=520, step_s=1.0, picture_s=0.01)
    assert caplog.text.count("No space left on device") == 1


def test_an_encoder_that_fails_in_a_film_is_said_once(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add = films.Mp4.add

    def fail_later(film: films.Mp4, picture: np.ndarray) -> None:
        if film._stream is not None:
            raise OSError(28, "No space left on device")
        add(film, picture)

    def close(film: films.Mp4) -> None:
        raise ValueError("the container is broken")

    monkeypatch.setattr(films.Mp4, "add", fail_later)
    monkeypatch.setattr(films.Mp4, "close", close)
    with caplog.at_level(logging.WARNING):
        filmed(tmp_path, clock, monkeypatch, steps=1200, step_s=1.0, picture_s=0.01)
    assert [record.getMessage() for record in caplog.records] == [
        "This training is not filmed any more. OSError: [Errno 28] No space left on device"
    ]


def test_a_film_that_would_take_too_long_is_left_out_once(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        counts, _ = filmed(tmp_path, clock, monkeypatch, steps=1200, step_s=0.05, picture_s=3.0)
    assert counts == {}
    assert caplog.text.count("There is no film of iteration 50:") == 1
    assert caplog.text.count("There is no film of iteration 100:") == 1


def test_the_film_under_way_is_closed_with_the_training(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, _ = filmed(tmp_path, clock, monkeypatch, steps=520, step_s=1.0, picture_s=0.01)
    assert counts == {"50": 7}
    assert Video(tmp_path / "50.mp4").still() is not None


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_a_training_is_filmed_and_its_report_shows_it(root: Path, tmp_path: Path) -> None:
    run = rlnb.train(
        "Isaac-Cartpole-Direct", library="rsl_rl", num_envs=256, max_iterations=60, film_every=25, device="cpu"
    ).wait(300)
    assert {*run.films} <= {25, 50}
    assert run.films, "a film is left out if it would take too long, but not the last one here"
    (*_, film) = run.films.values()
    still = film.still()
    assert still is not None
    assert np.asarray(still).std() > 2.0
    assert "data:video/mp4" in run.report(tmp_path / "report.html").read_text()
