"""The warm simulator on a GPU: trainings and pictures in a process that is already there."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import edit_loop
import warm_loop

import rlnb
from gpu.part import Measure, Part
from gpu.steps import CAMERA, within
from rlnb.errors import RlnbError
from rlnb.simulation.pool import pool

STATE = "Isaac-Cartpole-Direct"
SIZE = (100, 100)
ROUNDS = 3
ITERATIONS = 40


def measures() -> list[tuple[str, Measure]]:
    """Return the measures, the most telling first."""
    return [
        ("second training in a warm simulator / first", second_training),
        ("from an edit to a picture", edits),
        ("steps/s in a warm simulator / in a fresh process", adoption),
        ("two ranks that share one GPU", two_ranks),
        ("a TiledCamera of many envs / a camera of one env", tiles),
    ]


def second_training(part: Part, seconds: float) -> None:
    """Train twice in a kernel, and compare the times to the first iteration."""
    rlnb.preview(STATE, num_envs=2, device=part.device)
    time.sleep(part.size(20.0, 5.0))  # lets the simulator finish its background work
    first, second = (_first_iteration_s(part) for _ in range(2))
    part.record(
        "second training in a warm simulator / first: call to first iteration",
        f"{second / first:.2f} ({second:.2f} s and {first:.2f} s)",
        "<= 1.5",
        second <= 1.5 * first,
    )
    pool.shut_down()


def _first_iteration_s(part: Part) -> float:
    first_s, _, _ = warm_loop.trained(STATE, device=part.device)
    time.sleep(warm_loop.PAUSE_S)
    return first_s


def edits(part: Part, seconds: float) -> None:
    """Edit a cell and preview it, beside a fresh process of Isaac Lab."""
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    body, camera = edit_loop.CAMERA, "tiled_camera"
    edit_loop.edited("camera", body, 1, part.device)  # starts the simulator
    time.sleep(part.size(20.0, 5.0))
    rounds = []
    ends_s = time.monotonic() + seconds
    for number in range(part.size(ROUNDS, 1)):
        first_s, _ = edit_loop.edited("camera", body, number + 2, part.device)
        rounds.append((first_s, edit_loop.stock(base, body, camera, part.device)))
        ours, stock = (statistics.median(values) for values in zip(*rounds, strict=True))
        part.record(
            f"from an edit of a cell to the first picture, camera task, {edit_loop.NUM_ENVS} envs",
            f"median of {len(rounds)}: {ours:.2f} s; a fresh process of Isaac Lab {stock:.1f} s: {ours / stock:.3f}",
            "<= 1 s, <= 1/15 of a fresh process",
            ours <= 1.0 and ours / stock <= 1 / 15,
        )
        if time.monotonic() > ends_s:
            break
    pool.shut_down()


def adoption(part: Part, seconds: float) -> None:
    """Compare trainings that a warm simulator adopts with those of fresh processes.

    On a GPU, Newton replays a captured CUDA graph. A training that had lost it would step several times slower.
    """
    num_envs, iterations = part.size(4096, 64), part.size(ITERATIONS, 5)

    def rate(*, warm: bool) -> float:
        if warm:
            rlnb.preview(STATE, num_envs=2, steps=1, device=part.device)
        run = rlnb.train(STATE, num_envs=num_envs, max_iterations=iterations, device=part.device, warm=warm).wait()
        times_s = run.metrics["fps"].wall_time_s
        return 1.0 / statistics.median(later - earlier for earlier, later in itertools.pairwise(times_s[2:]))

    def pairs() -> Iterator[tuple[float, float]]:
        for number in itertools.count():
            order = (True, False) if number % 2 else (False, True)
            rates = {warm: rate(warm=warm) for warm in order}
            yield rates[True], rates[False]

    found = []
    for pair in within(part, pairs(), time.monotonic() + seconds):
        found.append(pair)
        part.record_pairs(
            f"rsl_rl, {STATE}, {num_envs:,} envs: steps/s of a training that a warm simulator adopts / in a fresh "
            "process",
            found,
            "iterations/s",
            at_least=0.98,
            low=0.95,
        )
    pool.shut_down()


def two_ranks(part: Part, seconds: float) -> None:
    """Ask for two ranks on one GPU."""
    what, bound = "two ranks that share one GPU", "refused with a fix, or they train"
    try:
        run = rlnb.train(STATE, num_envs=64, max_iterations=1, nproc_per_node=2, device="cuda")
    except RlnbError as exc:
        text = " ".join(str(exc).split())
        part.record(what, text, bound, "fix: " in text)
        return
    run.wait(timeout_s=max(60.0, seconds))
    devices = run.started.devices if run.started else ()
    part.record(what, f"{run.state} on {', '.join(devices)}", bound, run.state == "completed" and len(devices) == 2)


def tiles(part: Part, seconds: float) -> None:
    """Compare the pictures/s of one TiledCamera of many envs with those of a camera of one env."""
    num_envs = part.size(64, 8)

    def pairs() -> Iterator[tuple[float, float]]:
        while True:
            costs = rlnb.camera_budget(CAMERA, sizes=[SIZE], envs=[1, num_envs], frames=10, device=part.device).of(SIZE)
            one, many = (1000.0 * cost.num_envs / cost.ms for cost in costs)
            yield many, one

    found = []
    for pair in within(part, pairs(), time.monotonic() + seconds):
        found.append(pair)
        part.record_pairs(
            f"a TiledCamera of {num_envs} envs / a camera of one env, {SIZE[0]} x {SIZE[1]}: pictures/s",
            found,
            "pictures/s",
            at_least=1.0,
            low=1.0,
        )
    pool.shut_down()
