"""Reading event files: compared with TensorBoard's own EventAccumulator, the end of a long file, and many runs.

    python benchmarks/events.py

TensorBoard's own writer writes the files, one scalar per event, as the RL libraries do.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from results import ratio_interval, record
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from rlnb.metrics.events import EventReader
from rlnb.metrics.metrics import Metrics

TAGS = tuple(f"Train/metric_{number}" for number in range(20))
SCALARS, LONG, NEW, ROUNDS = 200_000, 1_000_000, 1_000, 10
RUNS, POINTS = 10, 100_000


def write(folder: Path, count: int, tags: tuple[str, ...] = TAGS, first: int = 0) -> Path:
    """Append ``count`` scalars to a folder's event file; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "events.out.tfevents.1000000000.host"
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for number in range(first, first + count):
            value = Summary.Value(tag=tags[number % len(tags)], simple_value=float(number % 1000))
            event = Event(wall_time=1e9 + number, step=number // len(tags), summary=Summary(value=[value]))
            writer.write(event.SerializeToString())
        writer.flush()
    return path


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def theirs(folder: Path) -> None:
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    assert sum(len(accumulator.Scalars(tag)) for tag in TAGS) == SCALARS


def ours(folder: Path) -> None:
    assert EventReader(folder).refresh() == SCALARS


def main() -> None:
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    write(base / "short", SCALARS)
    ours(base / "short")  # makes the imports of protobuf's classes
    pairs = [(timed(lambda: theirs(base / "short")), timed(lambda: ours(base / "short"))) for _ in range(ROUNDS)]
    ratio, low, high = ratio_interval(pairs)
    worst = max(mine for _, mine in pairs)
    record(
        f"event reading, {SCALARS:,} scalars, EventAccumulator / rlnb",
        f"{ratio:.1f} ({low:.1f} to {high:.1f}) times as long; worst of rlnb {worst:.2f} s, {ROUNDS} pairs",
        ">= 5, <= 1 s",
        low >= 5 and worst <= 1.0,
    )

    write(base / "long", LONG)
    reader = EventReader(base / "long")
    reader.refresh()
    took = []
    for number in range(ROUNDS):
        write(base / "long", NEW, first=LONG + number * NEW)
        took.append(timed(reader.refresh))
    record(
        f"{NEW:,} new events at the end of a file of {LONG:,}",
        f"median {1000 * statistics.median(took):.1f} ms, worst {1000 * max(took):.1f} ms of {ROUNDS}",
        "<= 20 ms",
        max(took) <= 0.02,
    )

    logs = [base / f"run-{number}" for number in range(RUNS)]
    for folder in logs:
        write(folder, POINTS)
    os.sync()
    runs = [Metrics(folder, None) for folder in logs]

    def first() -> None:
        for metrics in runs:
            metrics.limit_s = 0.02
            assert all(len(metrics[tag]) for tag in TAGS[:6])

    def rest() -> None:
        for metrics in runs:
            metrics.limit_s = float("inf")
            assert sum(len(metrics[tag]) for tag in TAGS) == POINTS

    seconds = timed(first)
    whole = seconds + timed(rest)
    record(
        f"{RUNS} runs of {POINTS:,} points, read from their event files: first curves, and all curves",
        f"{seconds:.2f} s and {whole:.2f} s",
        "<= 1 s and <= 6 s",
        seconds <= 1.0 and whole <= 6.0,
    )


if __name__ == "__main__":
    main()
