"""The warm simulator on a GPU: pictures, films, views, and the memory that it holds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import rlnb
from rlnb.machine.gpus import visible_gpus
from rlnb.node.usage import Gpus
from rlnb.records.camera_files import FrameReader, FrameRequest
from rlnb.records.layout import RunDir
from rlnb.simulation.pool import pool

if TYPE_CHECKING:
    from gpu.part import Part

pytestmark = [pytest.mark.gpu, pytest.mark.part(2), pytest.mark.timeout(600)]

STATE_TASK, CAMERA_TASK = "Isaac-Cartpole-Direct", "Isaac-Cartpole-Camera-Direct"
AT_REST = {
    f"initial_{part}_range": [0.0, 0.0] for part in ("cart_position", "cart_velocity", "pole_angle", "pole_velocity")
}
"""Overrides with which a reset draws no random number, since CPU and GPU draw different ones."""
DEPTH_TOLERANCE_M = 1e-3
Measured = Callable[[str, str, str, bool], None]
START_S = 300.0
SHARE = 0.04
"""Share of the training's time for live pictures."""
SETTLED_S = 8.0
"""Seconds without a decrease after which the GPU memory in use counts as settled."""
GROWTH_GIB, LEFT_GIB = 0.1, 0.1
"""GPU memory by which previews may grow it, and which may be left after the simulator was closed, in GiB."""
BALLAST = """
import sys, torch
free, total = torch.cuda.mem_get_info()
ballast = torch.empty(max(0, int(float(sys.argv[2]) * total) - (total - free)), dtype=torch.uint8, device=sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""
"""A process that fills a GPU's memory up to a share, until its stdin closes."""


@pytest.fixture(scope="module")
def run(folder: Path, device: str) -> rlnb.Run:
    """Provide a short training with a camera."""
    return rlnb.train(CAMERA_TASK, num_envs=8, max_iterations=1, device=device).wait(timeout_s=START_S)


def depth(device: str) -> np.ndarray:
    """Return the depth images of the first moment, shape (envs, height, width, 1), in metres."""
    task = rlnb.task(CAMERA_TASK, overrides=AT_REST)
    preview = rlnb.preview(task, data_types=["depth"], num_envs=2, steps=1, actions="zero", device=device)
    (clip,) = preview.clip.values()
    return clip["depth"][0]


def test_the_depth_of_a_preview_is_that_of_the_cpu(folder: Path, device: str, measured: Measured) -> None:
    here, there = depth(device), depth("cpu")
    seen = np.isfinite(there)  # a pixel without a surface has an infinite depth
    assert seen.any()
    np.testing.assert_array_equal(np.isfinite(here), seen)
    worst_m = float(np.abs(here[seen] - there[seen]).max())
    holds = worst_m <= DEPTH_TOLERANCE_M
    measured("depth of a preview - the CPU's", f"{worst_m:.1e} m", f"<= {DEPTH_TOLERANCE_M:g} m", holds)


def test_camera_frames_are_timed(folder: Path, device: str, measured: Measured) -> None:
    budget = rlnb.camera_budget(CAMERA_TASK, sizes=[(64, 64)], envs=[1, 16], frames=3, device=device)
    times_ms = [cost.ms for cost in budget.of((64, 64))]
    assert all(time_ms > 0 for time_ms in times_ms)
    text = f"{times_ms[0]:.1f} ms for 1 env, {times_ms[1]:.1f} ms for 16"
    measured("frame of a camera, 64 x 64", text, "16 envs cost less than 16 frames", times_ms[1] < 16 * times_ms[0])


def test_a_policy_is_filmed(run: rlnb.Run) -> None:
    pytest.importorskip("av")
    film = run.play(num_envs=2)
    assert film.path.stat().st_size > 1000


@pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed here")
def test_a_3d_view_answers(folder: Path, device: str) -> None:
    view = rlnb.view(STATE_TASK, num_envs=2, device=device)
    try:
        with urllib.request.urlopen(view.url, timeout=30) as page:
            assert page.status == 200
    finally:
        view.close()


def test_live_pictures_arrive_while_somebody_looks(folder: Path, device: str) -> None:
    run = rlnb.train(CAMERA_TASK, num_envs=4 if device == "cpu" else 512, max_iterations=100_000, device=device)
    try:
        until(lambda: run.state == "running" and run.progress[0] > 1, START_S)
        reader = FrameReader(RunDir(run.path))
        reader.want(FrameRequest(cameras=(), data_types=(), num_envs=4, size=(160, 120), share=SHARE))
        seen = 0

        def looked() -> bool:
            nonlocal seen
            reader.still_looking()
            seen += reader.newest() is not None
            return seen >= 2

        until(looked, START_S)
    finally:
        run.cancel()


def until(condition: Callable[[], object], timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"the condition did not hold within {timeout_s:.0f} s"
        time.sleep(0.2)


def memory_gib(device: str) -> float:
    """Return the memory in use on the GPU; in a rehearsal, that of the warm simulator."""
    if device == "cpu":
        return rlnb.simulator().memory_gib
    return dict(Gpus([visible_gpus()[0].uuid]).sample())["gpu0_memory_gib"]


def settled_gib() -> float:
    """Return the memory in use on the GPU after the processes that are about to end have given theirs back."""
    least, since_s = float("inf"), time.monotonic()
    while time.monotonic() < since_s + SETTLED_S:
        now = memory_gib("cuda:0")
        if now < least:
            least, since_s = now, time.monotonic()
        time.sleep(0.5)
    return least


def test_previews_keep_no_memory_and_a_closed_simulator_none(folder: Path, device: str, part: Part) -> None:
    """Each value is recorded as soon as it is known: before the simulator, during its previews, and after its end."""
    what, bound = "memory of previews", f"growth <= {GROWTH_GIB:g}, left <= {LEFT_GIB:g} GiB"
    pool.shut_down()
    before = settled_gib() if device != "cpu" else 0.0
    text = f"before {before:.2f} GiB; during"
    held = []
    for _ in range(5):
        rlnb.preview(CAMERA_TASK, num_envs=4, steps=2, device=device)
        held.append(memory_gib(device))
        text += f" {held[-1]:.2f}"
        part.record(what, f"{text}; not measured after its end", bound, False)
    growth = held[-1] - held[1]
    pool.shut_down()
    text += " GiB after each preview; after the simulator's end"
    if device == "cpu":
        part.record(what, f"{text} not counted on a CPU", bound, False)
        return
    after = settled_gib()
    holds = growth <= GROWTH_GIB and after - before <= LEFT_GIB
    part.record(what, f"{text} {after:.2f} GiB", bound, holds)
    assert holds


def test_a_training_on_a_full_gpu_survives_a_check(folder: Path, device: str) -> None:
    ballast = None
    if device != "cpu":
        argv = [sys.executable, "-c", BALLAST, device, "0.9"]
        ballast = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert ballast.stdout is not None
        assert ballast.stdout.readline() == b"ready\n"
    try:
        run = rlnb.train(STATE_TASK, num_envs=64, max_iterations=30, device=device)
        until(lambda: run.state != "queued" and run.progress[0] > 0, START_S)
        assert rlnb.check("Isaac-Ant-Direct", device=device) == []
        run.wait(timeout_s=START_S)
    finally:
        if ballast is not None:
            ballast.communicate()
    assert run.progress == (30, 30)
