"""The last point of each curve is that of the whole curve, whatever the event files hold."""

from __future__ import annotations

import math
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from event_records import record, scalar
from tensorboard.compat.proto.event_pb2 import Event, SessionLog

from rlnb.metrics.events import EventReader
from rlnb.metrics.metrics import last_points

EVENT_FILES = Path(__file__).with_name("event_files")


def start(step: int) -> bytes:
    return record(Event(wall_time=1e9, step=step, session_log=SessionLog(status=SessionLog.START)))


def of_curves(folder: Path, ends: dict[str, int]) -> list[tuple[str, str, int | None, str]]:
    """Return what whole curves end with, with the number as text, so that nan equals nan."""
    reader = EventReader(folder, without="system")
    reader.end_at(ends)
    reader.refresh()
    found: list[tuple[str, str, int | None, str]] = []
    for curve in reader.curves.values():
        last = curve.column[-1] if len(curve.column) else None
        found.append((curve.tag, curve.folder, last[0] if last else None, repr(last[2] if last else math.nan)))
    return found


def ends_of(folder: Path, ends: dict[str, int]) -> list[tuple[str, str, int | None, str]]:
    points, _ = last_points(folder, ends)
    return [(point.tag, point.folder, point.step, repr(point.value)) for point in points]


def event_file(rng: random.Random, begin: int) -> bytes:
    """Return an event file of a training that may go back, be restarted and stop logging a tag."""
    tags, step = [f"t{number}" for number in range(rng.randrange(1, 5))], begin
    parts = [record(Event(wall_time=1e9 + rng.random(), file_version="brain.Event:2"))]
    for _ in range(rng.randrange(1, 40)):
        step += 1
        tags = rng.sample(tags, len(tags) - (len(tags) > 1 and rng.random() < 0.05))
        if rng.random() < 0.1:
            parts.append(start(max(0, step - rng.randrange(30))))
        if rng.random() < 0.1:
            step = max(0, step - rng.randrange(30))
        parts += [scalar(tag, step, rng.choice((rng.random(), math.nan, math.inf))) for tag in tags]
    if rng.random() < 0.2:
        parts.append(start(rng.randrange(40)))
    data = bytearray(b"".join(parts))
    if rng.random() < 0.3:
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("seed", range(120))
def test_the_last_points_are_those_of_the_whole_curves(tmp_path: Path, seed: int) -> None:
    ends: dict[str, int] = {}
    rng = random.Random(seed)
    for number in range(rng.randrange(1, 5)):
        folder = rng.choice(("", "", "train", "a/b", "system"))
        path = tmp_path / folder / f"events.out.tfevents.{10**9 + rng.randrange(5)}.host.{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(event_file(rng, rng.randrange(40)))
        if rng.random() < 0.2:
            ends[path.relative_to(tmp_path).as_posix()] = rng.randrange(path.stat().st_size + 10)
    assert ends_of(tmp_path, ends) == of_curves(tmp_path, ends)


@pytest.mark.parametrize("package", sorted(path.name for path in EVENT_FILES.iterdir() if path.is_dir()))
def test_the_last_points_of_the_files_of_real_packages_are_those_of_their_curves(package: str) -> None:
    found = ends_of(EVENT_FILES / package, {})
    assert found
    assert found == of_curves(EVENT_FILES / package, {})


def test_a_point_that_a_later_start_removes_is_not_the_last(tmp_path: Path) -> None:
    data = b"".join(scalar("loss", step, float(step)) for step in range(10)) + start(5)
    (tmp_path / "events.out.tfevents.1000000000.host").write_bytes(data)
    (point,) = last_points(tmp_path, {})[0]
    assert (point.step, point.value) == (4, 4.0)


def test_curves_are_not_kept_in_memory(tmp_path: Path) -> None:
    data = scalar("loss", 2**20, 0.5) * 400_000
    (tmp_path / "events.out.tfevents.1000000000.host").write_bytes(data)
    last_points(tmp_path / "none", {})  # makes the imports
    tracemalloc.start()
    try:
        assert len(last_points(tmp_path, {})[0]) == 1
        assert tracemalloc.get_traced_memory()[1] < 4 << 20, "of 9.6 MB of points"
    finally:
        tracemalloc.stop()


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(64))


def pipe(path: Path) -> None:
    os.mkfifo(path.with_name("other.tfevents"))


def folder(path: Path) -> None:
    path.with_name("other.tfevents").symlink_to(path.parent)


@pytest.mark.parametrize("fault", [damage, pipe, folder])
def test_files_that_cannot_be_read_whole_are_not_sound(tmp_path: Path, fault: Callable[[Path], None]) -> None:
    path = tmp_path / "events.out.tfevents.1000000000.host"
    path.write_bytes(scalar("loss", 1, 0.5))
    assert last_points(tmp_path, {})[1]
    fault(path)
    points, sound = last_points(tmp_path, {})
    assert (len(points), sound) == (1, False)
