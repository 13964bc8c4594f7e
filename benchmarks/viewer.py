"""The cost of a camera viewer for a training: one run, alternately with and without a viewer.

    python benchmarks/viewer.py

The iterations per second of each turn come from the run's own event file. A pair is two neighbouring turns, whose order
changes from pair to pair.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from against_isaaclab import asset_root
from results import ratio_interval, record

import rlnb
from rlnb.records.camera_files import LIVES_S, FrameReader, FrameRequest
from rlnb.records.layout import RunDir

CASES = (("Isaac-Ant-Direct", 64), ("Isaac-Cartpole-Camera-Direct", 16))
SHARE = 0.04
NOTICED_S = 5.0
"""Seconds until a training notices that the viewer has left: it checks between env steps, but not while it learns."""


def turn(run: rlnb.Run, reader: FrameReader, seconds: float, *, looking: bool) -> tuple[float, float, int]:
    """Return the begin and end of a turn, and the number of frames received in it."""
    if not looking:
        time.sleep(LIVES_S + NOTICED_S)
        reader.newest()  # drops the last frame of the turn before
    begun, frames, told = time.time(), 0, 0.0
    while time.time() < begun + seconds:
        if looking and time.time() - told > 1.0:
            reader.still_looking()
            told = time.time()
        frames += reader.newest() is not None
        time.sleep(0.05)
    return begun, time.time(), frames


def rate(run: rlnb.Run, begun: float, ended: float) -> float:
    """Return the iterations per second between the first and the last iteration that ended in a turn."""
    times = [at for at in run.metrics["fps"].wall_time_s if begun <= at <= ended]
    if len(times) < 2:
        raise SystemExit(f"{len(times)} iterations ended in a turn of {ended - begun:.0f} s. Use a larger --turn-s.")
    return (len(times) - 1) / (times[-1] - times[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--turn-s", type=float, default=25.0)
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="run only this case")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-")) / "rlnb"
    for task, num_envs in CASES if arguments.case is None else CASES[arguments.case :][:1]:
        run = rlnb.train(task, num_envs=num_envs, max_iterations=100_000, device="cpu", warm=False)
        while run.state != "running" or run.progress[0] < 2:
            time.sleep(1)
        reader = FrameReader(RunDir(run.path))
        reader.want(FrameRequest(cameras=(), data_types=(), num_envs=9, size=(160, 120), share=SHARE))
        turn(run, reader, 5.0, looking=True)  # makes the one-time setup of the first image
        turns = []
        for pair in range(arguments.pairs):
            order = (True, False) if pair % 2 else (False, True)
            turns.append({looking: turn(run, reader, arguments.turn_s, looking=looking) for looking in order})
        pairs = [tuple(rate(run, *made[looking][:2]) for looking in (True, False)) for made in turns]
        seen, unseen = (sum(made[looking][2] for made in turns) for looking in (True, False))
        run.cancel()
        median, low, high = ratio_interval(pairs)  # type: ignore[arg-type]
        record(
            f"{task}, {num_envs} envs: training with a viewer / without",
            f"{median:.3f} ({low:.3f} to {high:.3f}), {arguments.pairs} pairs of {arguments.turn_s:g} s; "
            f"{seen / arguments.pairs / arguments.turn_s:.2f} frames/s with, {unseen} frames without",
            ">= 0.95; no frames without",
            median >= 0.95 and unseen == 0,
        )
        while run.state == "running":
            time.sleep(0.5)


if __name__ == "__main__":
    main()
