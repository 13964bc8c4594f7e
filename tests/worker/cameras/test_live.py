"""When a training takes pictures: never unasked, and never for more than its share of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.errors import RlnbError
from rlnb.records import camera_files
from rlnb.records.camera_files import FrameReader, Wanted
from rlnb.records.layout import RunDir
from rlnb.worker.cameras import live

STEP_S, RENDER_S, SHARE = 0.01, 0.04, 0.05


class Clock:
    """Time passes as steps and pictures take it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 0.0


class Env:
    """Counts what is done with it."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.pictures, self.steps, self.fails = clock, 0, 0, False

    def step(self, action: Any) -> str:
        self.clock.now += STEP_S
        self.steps += 1
        return f"outcome of {action}"

    def taker(self, _: Any, wanted: Wanted) -> Any:
        self.taken_for = wanted.num_envs
        return self.take

    def take(self) -> dict[str, Any]:
        if self.fails:
            raise RlnbError("This task has no camera.")
        self.clock.now += RENDER_S
        self.pictures += 1
        return {"wrist/rgb": np.zeros((self.taken_for, 2, 2, 3), np.uint8)}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture
def env(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> Env:
    clock = Clock()
    made = Env(clock)
    for module in (live, camera_files):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(live.isaaclab, "task_env", lambda given: given)
    monkeypatch.setattr(live, "taker", made.taker)
    live.View(made, run).attach()
    return made


def wanted(share: float = SHARE, num_envs: int = 1) -> Wanted:
    return Wanted(cameras=(), data_types=(), num_envs=num_envs, size=(160, 120), share=share)


def steps(env: Env, seconds: float, reader: FrameReader | None = None) -> None:
    begun = env.clock.now
    told = float("-inf")
    while env.clock.now < begun + seconds:
        if reader and env.clock.now - told > 1.0:
            reader.still_looking()
            told = env.clock.now
        assert env.step(3) == "outcome of 3"


def test_nothing_is_rendered_while_nobody_looks(env: Env, run: RunDir) -> None:
    steps(env, 20.0)
    assert env.pictures == 0
    reader = FrameReader(run)
    reader.want(wanted())
    steps(env, 5.0, reader)
    seen = env.pictures
    assert seen > 0
    steps(env, camera_files.LIVES_S + 1.0)  # the page is closed
    seen = env.pictures
    steps(env, 20.0)
    assert env.pictures == seen


@pytest.mark.parametrize("share", [0.04, 0.2])
def test_pictures_take_no_more_than_their_share(env: Env, run: RunDir, share: float) -> None:
    reader = FrameReader(run)
    reader.want(wanted(share))
    steps(env, 5.0, reader)  # the first follows its making at once
    before = env.pictures
    steps(env, 60.0, reader)
    spent = (env.pictures - before) * RENDER_S / 60.0
    assert 0.8 * share < spent <= 1.01 * share


def test_why_there_are_no_pictures_is_said_and_the_training_goes_on(env: Env, run: RunDir) -> None:
    env.fails = True
    reader = FrameReader(run)
    reader.want(wanted())
    steps(env, 3.0)
    seen = reader.newest()
    assert seen is not None
    assert (seen.error, seen.images) == ("RlnbError: This task has no camera.", {})


def test_a_new_request_is_answered_from_its_first_frame_on(env: Env, run: RunDir) -> None:
    reader = FrameReader(run)
    reader.want(wanted())
    steps(env, 10.0, reader)
    other = FrameReader(run)
    other.want(wanted(0.5, num_envs=3))
    steps(env, 1.5, other)
    seen = other.newest()
    assert seen is not None
    assert seen.number <= 20
    assert len(seen.images["wrist/rgb"]) == 3


def test_a_request_that_cannot_be_read_does_not_end_the_training(env: Env, run: RunDir) -> None:
    FrameReader(run).want(wanted())
    run.wanted.write_text('{"nonsense": 1}')
    steps(env, 2.0)
    run.wanted.write_text("{")
    steps(env, 2.0)
    assert env.pictures == 0
