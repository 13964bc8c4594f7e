"""Pictures of a training: taken only on request, and within a share of the training's time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from rlnb.configs.cameras import FREE, CameraPose
from rlnb.errors import RlnbError
from rlnb.records import camera_files
from rlnb.records.camera_files import FrameReader, FrameRequest
from rlnb.records.layout import RunDir
from rlnb.worker.cameras import live

STEP_S, RENDER_S, SHARE = 0.01, 0.04, 0.05


class Clock:
    """A clock that only steps and pictures move forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 0.0


class Env:
    """An env that counts its steps and pictures."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.pictures, self.steps, self.fails = clock, 0, 0, False
        self.takers, self.place = 0, FREE
        self.device = "cpu"

    def step(self, action: Any) -> str:
        self.clock.now += STEP_S
        self.steps += 1
        return f"outcome of {action}"

    def taker(self, _: Any, wanted: FrameRequest) -> Any:
        self.takers += 1
        self.taken_for, self.place = wanted.num_envs, wanted.aim
        return self

    def aim(self, aim: CameraPose) -> None:
        self.place = aim

    def __call__(self) -> dict[str, Any]:
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
    monkeypatch.setattr(live, "FrameSource", made.taker)
    live.View(made, run).attach()
    return made


def wanted(share: float = SHARE, num_envs: int = 1) -> FrameRequest:
    return FrameRequest(cameras=(), data_types=(), num_envs=num_envs, size=(160, 120), share=share)


def steps(env: Env, seconds: float, reader: FrameReader | None = None) -> None:
    start_s = env.clock.now
    last_s = float("-inf")
    while env.clock.now < start_s + seconds:
        if reader and env.clock.now - last_s > 1.0:
            reader.still_looking()
            last_s = env.clock.now
        assert env.step(3) == "outcome of 3"


def test_nothing_is_rendered_without_a_viewer(env: Env, run: RunDir) -> None:
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
    steps(env, 5.0, reader)  # the first frame does not wait for its share of time
    before = env.pictures
    steps(env, 60.0, reader)
    spent = (env.pictures - before) * RENDER_S / 60.0
    assert 0.8 * share < spent <= 1.01 * share


def test_the_reason_for_missing_pictures_is_reported_and_the_training_continues(env: Env, run: RunDir) -> None:
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


def test_a_camera_is_aimed_anew_without_a_new_set_up_and_the_stream_goes_on(env: Env, run: RunDir) -> None:
    reader = FrameReader(run)
    reader.want(wanted())
    steps(env, 5.0, reader)
    before = reader.newest()
    aim = CameraPose(eye=(2.0, 0.0, 1.0), target=(0.0, 0.0, 0.5))
    reader.aim(aim)
    steps(env, 2.0, reader)
    after = reader.newest()
    assert before is not None
    assert after is not None
    assert (before.place, after.place) == (FREE, aim)
    assert after.number > before.number
    assert env.takers == 1
    reader.want(wanted(num_envs=2))
    steps(env, 2.0, reader)
    assert env.takers == 2, "another request needs another set-up"


def test_a_request_that_cannot_be_read_does_not_end_the_training(env: Env, run: RunDir) -> None:
    FrameReader(run).want(wanted())
    run.wanted.write_text('{"nonsense": 1}')
    steps(env, 2.0)
    run.wanted.write_text("{")
    steps(env, 2.0)
    assert env.pictures == 0


def test_work_that_the_steps_have_queued_on_a_gpu_is_not_a_cost_of_the_pictures(
    env: Env, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU is a stand-in, which needs half a second for what the last steps have queued."""
    pictures: list[int] = []

    def synchronize(device: str) -> None:
        assert device == "cuda:0"
        pictures.append(env.pictures)
        env.clock.now += 0.5

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    env.device = "cuda:0"
    steps(env, 5.0)
    assert pictures == [], "without a viewer, steps are only queued"
    reader = FrameReader(run)
    reader.want(wanted())
    steps(env, 10.0, reader)
    frame = reader.newest()
    assert frame is not None
    assert frame.cost_s == pytest.approx(RENDER_S)
    assert pictures == [*range(env.pictures)], "once for each picture"


def test_rtx_settles_only_for_cameras_that_the_training_does_not_read(
    rtx_env: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = rtx_env(observed=("policy",), policy=["rgb"], idle=["rgb"])
    sensors = ModuleType("isaaclab.sensors")
    sensors.Camera = type(env.scene.sensors["policy"])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "isaaclab", ModuleType("isaaclab"))
    monkeypatch.setitem(sys.modules, "isaaclab.sensors", sensors)
    take = live.FrameSource(env, wanted())
    for step in range(1, 4):
        env.step("action")
        images = take()
        assert images["policy/rgb"][0, 0, 0].tolist() == [step, 0, 0], "the observation of the policy is not changed"
        assert images["idle/rgb"][0, 0, 0].tolist() == [step, 0, 3]
