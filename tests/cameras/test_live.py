"""The kernel's requests for the cameras of a training, through the run's folder, without a simulator."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.cameras.live import CameraFeed, shown
from rlnb.configs.cameras import CameraPose
from rlnb.display.live_pictures import Gesture
from rlnb.plugin import Manifest, Result
from rlnb.records.camera_files import Frame, FrameWriter
from rlnb.records.facts import RunFacts
from rlnb.records.layout import RunDir
from rlnb.storage import files
from rlnb.storage.serial import to_json

SIZE = (64, 48)


def run_of(root: Path, library: str) -> RunDir:
    """Write the files of a running training."""
    folder = RunDir(root / "runs" / f"of-{library}")
    folder.path.mkdir(parents=True)
    manifest = Manifest(run_id=folder.path.name, created="", task=rlnb.Task(id="Lift"), library=library)
    files.write_once(folder.manifest, to_json(manifest))
    return folder


def feed_of(folder: RunDir, **arguments: Any) -> CameraFeed:
    values = {"cameras": ["wrist"], "data_types": [], "num_envs": 2, "size": SIZE, "share": 0.1, **arguments}
    return CameraFeed(RunFacts(folder.path), **values)


@pytest.fixture
def folder(root: Path) -> RunDir:
    run = run_of(root, "rsl_rl")
    run.next_job("train")
    return run


def frame(error: str = "", token: str = "") -> Frame:
    images = {"wrist/rgb": np.full((2, 48, 64, 3), 9, np.uint8), "wrist/depth": np.ones((2, 48, 64, 1), np.float32)}
    return Frame(number=0, step=7, cost_s=0.02, error=error, images={} if error else images, token=token)


def test_a_request_reaches_the_training_and_its_frame_comes_back_once(folder: RunDir) -> None:
    feed = feed_of(folder)
    assert feed.newest() is None
    writer = FrameWriter(folder)
    wanted = writer.wanted()
    assert wanted is not None
    assert (wanted.cameras, wanted.num_envs, wanted.size, wanted.share) == (("wrist",), 2, SIZE, 0.1)
    writer.show(frame(token=wanted.token))
    pictures = feed.newest()
    assert pictures is not None
    assert len(pictures.pictures) == 2
    assert feed.newest() is None, "the frame is not newer than the last"
    assert not feed.over()


def test_a_training_that_cannot_take_pictures_reports_why(folder: RunDir) -> None:
    feed = feed_of(folder)
    writer = FrameWriter(folder)
    wanted = writer.wanted()
    assert wanted is not None
    writer.show(frame("No camera named 'wrost'.", wanted.token))
    with pytest.raises(rlnb.RlnbError, match="No camera named 'wrost'"):
        feed.newest()


@pytest.mark.parametrize("arguments", [{"num_envs": 0}, {"share": 0.0}, {"share": 1.5}])
def test_an_invalid_share_or_number_of_envs_is_refused(folder: RunDir, arguments: dict[str, float]) -> None:
    with pytest.raises(rlnb.RlnbError, match="must be at least 1"):
        feed_of(folder, **arguments)


def test_a_movement_turns_an_added_camera_and_a_reset_lets_it_follow_again(folder: RunDir) -> None:
    feed, writer = feed_of(folder), FrameWriter(folder)
    first = writer.wanted()
    assert first is not None
    feed.turn(Gesture(right=0.1))
    assert writer.wanted() is first, "there is no picture yet"
    place = CameraPose(eye=(2.0, 0.0, 0.5), target=(0.0, 0.0, 0.5))
    writer.show(dataclasses.replace(frame(token=first.token), place=place))
    pictures = feed.newest()
    assert pictures is not None
    assert pictures.place == "eye=(2.0, 0.0, 0.5), target=(0.0, 0.0, 0.5)"
    for zoom in (1.0, 2.0):
        feed.turn(Gesture(right=-math.pi / 4, zoom=zoom))
    aimed = writer.wanted()
    assert aimed is not None
    assert str(aimed.aim) == "eye=(0.0, 4.0, 0.5), target=(0.0, 0.0, 0.5)"
    assert dataclasses.replace(aimed, aim=first.aim) == first
    feed.turn(Gesture(reset=True))
    assert writer.wanted() == first


def test_a_wrong_eye_is_refused_before_a_request(folder: RunDir) -> None:
    with pytest.raises(rlnb.CheckError, match="eye='up' is not a position of three numbers"):
        feed_of(folder, eye="up")


def test_a_library_without_a_simulator_shows_no_cameras(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"of-echo \(echo\) is not stepped by rlnb"):
        feed_of(run_of(root, "echo"))


def test_a_run_that_has_ended_is_refused_with_the_call_that_shows_its_policy(folder: RunDir) -> None:
    (job,) = folder.jobs()
    files.write_once(job.result, to_json(Result(outcome="completed")))
    with pytest.raises(rlnb.RlnbError, match=r"has ended \(completed\)\. Use rlnb\.preview\(run\)"):
        feed_of(folder)


def test_colours_may_be_compressed_and_the_caption_names_the_step_and_the_cost() -> None:
    pictures = shown(frame())
    assert pictures.lossless == [False, True]
    assert pictures.caption == "wrist/rgb, wrist/depth; env step 7, cost 20 ms"
