"""Camera frames through the run's folder: requests expire unless kept alive, and no frame is read half-written."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rlnb.errors import RlnbError
from rlnb.records import camera_files
from rlnb.records.camera_files import Frame, FrameReader, FrameRequest, FrameWriter
from rlnb.records.layout import RunDir
from rlnb.storage import clock as clock_of_files

WANTED = FrameRequest(cameras=("wrist",), data_types=(), num_envs=4, size=(160, 120), share=0.04)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(camera_files.time, "monotonic", lambda: now[0])
    return now


def frame(writer: FrameWriter, number: int, value: int = 7) -> Frame:
    """Return a frame that answers the current request."""
    wanted = writer.wanted()
    assert wanted is not None
    images = {"wrist/rgb": np.full((4, 6, 8, 3), value, np.uint8)}
    return Frame(number=number, step=10, cost_s=0.01, error="", images=images, token=wanted.token)


def live_request(writer: FrameWriter) -> FrameRequest | None:
    """Return the live request without its token."""
    wanted = writer.wanted()
    return wanted and dataclasses.replace(wanted, token="")


def test_a_request_expires_unless_the_viewer_keeps_it_alive(run: RunDir, clock: list[float]) -> None:
    writer, reader = FrameWriter(run), FrameReader(run)
    assert writer.wanted() is None
    reader.want(WANTED)
    assert live_request(writer) == WANTED
    clock[0] += camera_files.LIVES_S - 0.1
    assert live_request(writer) == WANTED
    clock[0] += 0.2
    assert writer.wanted() is None
    reader.still_looking()
    assert live_request(writer) == WANTED


def test_a_request_that_is_kept_alive_never_expires(run: RunDir, clock: list[float]) -> None:
    writer, reader = FrameWriter(run), FrameReader(run)
    reader.want(WANTED)
    assert writer.wanted() is not None
    for second in range(30):
        clock[0] += 1.0
        os.utime(run.wanted, (second, second))  # the clock of another machine may be far off
        assert writer.wanted() is not None


def test_a_request_left_from_an_earlier_job_is_not_answered(run: RunDir) -> None:
    reader = FrameReader(run)
    reader.want(WANTED)
    os.utime(run.wanted, (0, 0))
    writer = FrameWriter(run)
    assert writer.wanted() is None
    reader.still_looking()
    assert live_request(writer) == WANTED


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_a_node_with_another_clock_than_the_file_server_answers(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    FrameReader(run).want(WANTED)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead_s)
    monkeypatch.setattr(clock_of_files, "_offsets", {})
    assert live_request(FrameWriter(run)) == WANTED


def test_the_same_request_stays_the_same_object_and_a_new_one_replaces_it(run: RunDir) -> None:
    writer, reader = FrameWriter(run), FrameReader(run)
    reader.want(WANTED)
    first = writer.wanted()
    reader.still_looking()
    assert writer.wanted() is first
    other = FrameRequest(cameras=(), data_types=("depth",), num_envs=1, size=(160, 120), share=0.5)
    FrameReader(run).want(other)
    assert live_request(writer) == other


def test_each_frame_is_returned_once(run: RunDir) -> None:
    writer, reader = FrameWriter(run), FrameReader(run)
    reader.want(WANTED)
    assert reader.newest() is None
    writer.show(frame(writer, 0))
    seen = reader.newest()
    assert seen is not None
    assert (seen.number, seen.step, seen.cost_s, seen.error) == (0, 10, 0.01, "")
    assert (seen.images["wrist/rgb"] == 7).all()
    assert reader.newest() is None
    writer.show(frame(writer, 1))
    writer.show(frame(writer, 2))
    seen = reader.newest()
    assert seen is not None
    assert seen.number == 2


def test_the_answer_to_an_older_request_is_skipped(run: RunDir) -> None:
    writer, first = FrameWriter(run), FrameReader(run)
    first.want(WANTED)
    old = frame(writer, 0)
    writer.show(old)
    second = FrameReader(run)
    second.want(WANTED)
    assert second.newest() is None
    writer.show(old)
    assert second.newest() is None
    writer.show(frame(writer, 1))
    seen = second.newest()
    assert seen is not None
    assert seen.number == 1


def test_a_request_in_a_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "view").write_text("a file")
    with pytest.raises(RlnbError, match="A request for frames cannot be written to"):
        FrameReader(RunDir(tmp_path)).want(WANTED)


def test_a_frame_is_never_read_half_written(run: RunDir) -> None:
    writer, reader = FrameWriter(run), FrameReader(run)
    reader.want(WANTED)
    done = threading.Event()

    def show() -> None:
        for number in range(200):
            writer.show(frame(writer, number, number % 256))
        done.set()

    threading.Thread(target=show).start()
    seen = 0
    while not done.is_set() or seen == 0:
        newest = reader.newest()
        if newest is not None:
            assert (newest.images["wrist/rgb"] == newest.number % 256).all()
            seen += 1
    assert {path.name for path in run.view.iterdir()} == {"wanted.json", "frame.npz"}


def test_a_pipe_or_a_damaged_frame_is_not_read_for_long(run: RunDir) -> None:
    reader = FrameReader(run)
    reader.want(WANTED)
    os.mkfifo(run.frame)
    with pytest.raises(RlnbError, match=r"frame\.npz is not a regular file"):
        reader.newest()
    run.frame.unlink()
    run.frame.write_bytes(b"PK no archive")
    with pytest.raises(RlnbError, match=r"frame\.npz is damaged"):
        reader.newest()
    np.savez_compressed(run.frame, zeros=np.zeros(camera_files.MOST_BYTES + 1, np.uint8))
    with pytest.raises(RlnbError, match=r"its arrays have 268,\d{3},\d{3} bytes"):
        reader.newest()


@pytest.mark.parametrize("text", ["[", '{"cameras": 5}', "{}"])
def test_a_damaged_request_does_not_end_a_training(run: RunDir, text: str) -> None:
    writer = FrameWriter(run)
    run.view.mkdir()
    run.wanted.write_text(text)
    assert writer.wanted() is None
