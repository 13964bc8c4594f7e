"""Trainings in another user's account behind a real SSH server on this machine, without a shared folder. Needs root.

    python benchmarks/ssh.py
    python benchmarks/ssh.py --parts delay away

- ``delay``: the time from the write of a scalar there until it is here.
- ``away``: two minutes without a connection; the time until the curves are whole again, and the missing iterations.
- ``copy``: a checkpoint of 1 GB: what arrives by itself, and the time of ``run.fetch()``.
- ``start``: the time from ``rlnb.train()`` to the first iteration, compared with a training on this machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results import record

import rlnb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import ssh as rig

PARTS = ("start", "delay", "copy", "away")
SCALARS, STARTS = 20, 5
AWAY_S = 120.0
LARGE_BYTES = 1 << 30
WAIT_S = 120.0


def until(fact: Callable[[], object]) -> float:
    """Wait until a condition holds; return the seconds that it took."""
    begin_s = time.monotonic()
    while not fact():
        assert time.monotonic() - begin_s < WAIT_S, "the condition did not hold"
        time.sleep(0.005)
    return time.monotonic() - begin_s


def train(launcher: Any) -> rlnb.Run:
    """Start a training with two iterations a second, and wait until it runs."""
    run = rlnb.train("Echo", library="echo", max_iterations=10_000, agent={"iteration_s": 0.5}, launcher=launcher)
    until(lambda: run.state == "running")
    return run


def starts(launcher: Any) -> list[float]:
    """Return the seconds from the call to the first scalar of some trainings."""
    seconds = []
    for _ in range(STARTS):
        begin_s = time.monotonic()
        run = train(launcher)
        seconds.append(time.monotonic() - begin_s)
        run.cancel(save_s=0)
        until(lambda run=run: run.state == "cancelled")
    return seconds


def delays(events: Path, copy: Path) -> list[float]:
    """Return the seconds until some scalars are here.

    Args:
        events: Event file there.
        copy: Its mirror here.
    """
    seconds = []
    for _ in range(SCALARS):
        size = events.stat().st_size
        until(lambda size=size: events.stat().st_size > size)
        size = events.stat().st_size
        seconds.append(until(lambda size=size: copy.stat().st_size >= size))
    return seconds


def copy_large(run: rlnb.Run, there: Path) -> dict[str, float]:
    """Return the bytes that arrive by themselves, and the seconds of a copy."""
    large = there / "logs" / "model_900000.json"
    with open(large, "wb") as file:
        for _ in range(LARGE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
    listed_s = until(lambda: any(path.name == large.name for path in run.checkpoints))
    time.sleep(5.0)
    here = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    begin_s = time.monotonic()
    run.fetch(large.name)
    return {"listed_s": listed_s, "bytes_before": here, "fetch_s": time.monotonic() - begin_s}


def away(machine: rig.Machine, run: rlnb.Run, events: Path, copy: Path) -> dict[str, float]:
    """Return what a time without a connection does."""
    machine.stop()
    said_s = until(lambda: "no connection" in run.record.reason)
    time.sleep(AWAY_S)
    machine.start()
    size = events.stat().st_size
    whole_s = until(lambda: copy.stat().st_size >= size)
    iterations = run.metrics["reward"].iterations
    return {"said_s": said_s, "whole_s": whole_s, "missing": float(len(set(range(len(iterations))) - {*iterations}))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parts = parser.parse_args().parts
    found: dict[str, float] = {}
    rlnb.options.root, rlnb.options.warm = tempfile.mkdtemp(), False
    with rig.machine() as machine:
        gpu = rlnb.ssh(machine.place, python=machine.python, root=str(machine.runs), options=machine.options)
        if "start" in parts:
            found["start_here_s"], found["start_there_s"] = map(statistics.median, (starts(None), starts(gpu)))
        run = train(gpu)
        there = machine.runs / "runs" / run.id
        (events,) = (there / "logs").glob("*tfevents*")
        copy = run.path / "logs" / events.name
        if "delay" in parts:
            seconds = delays(events, copy)
            found |= {"delay_median_s": statistics.median(seconds), "delay_most_s": max(seconds)}
        if "copy" in parts:
            found |= copy_large(run, there)
        if "away" in parts:
            found |= away(machine, run, events, copy)
        run.cancel(save_s=0)
        until(lambda: run.state == "cancelled")
    rows(found)


def rows(found: dict[str, float]) -> None:
    """Print and record what was measured."""
    if "start_there_s" in found:
        more_s = found["start_there_s"] - found["start_here_s"]
        measured = f"{found['start_here_s']:.1f} s here, {found['start_there_s']:.1f} s there"
        record("ssh: from rlnb.train() to the first iteration", measured, "at most 10 s more", more_s <= 10.0)
    if "delay_most_s" in found:
        measured = f"{found['delay_median_s']:.2f} s, at most {found['delay_most_s']:.2f} s"
        record("ssh: a scalar arrives", measured, "within 2 s", found["delay_most_s"] <= 2.0)
    if "fetch_s" in found:
        measured = f"{found['bytes_before'] / 1e6:.1f} MB before, {found['fetch_s']:.1f} s to copy it"
        record("ssh: a checkpoint of 1 GB", measured, "only on request", found["bytes_before"] < 1e7)
    if "whole_s" in found:
        measured = f"{found['missing']:.0f} iterations missing, whole after {found['whole_s']:.1f} s"
        record("ssh: two minutes without a connection", measured, "curves whole", not found["missing"])


if __name__ == "__main__":
    main()
