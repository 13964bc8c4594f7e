"""Rows of repeated events give the scalars that protobuf reads record by record."""

from __future__ import annotations

import random
import struct
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from event_records import record, scalar
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from rlnb.metrics.events import EventReader

NAME = "events.out.tfevents.1000000000.host"
HEADER, LARGEST, CHUNK = struct.Struct("<QI"), 1 << 28, 1 << 18
Scalars = dict[str, list[tuple[int, float, float]]]


def one_by_one(data: bytes) -> Scalars:
    """Return the scalars that protobuf finds in the records of a file, up to its first damaged one."""
    scalars: Scalars = defaultdict(list)
    begin = 0
    while begin + HEADER.size <= len(data):
        length, _ = HEADER.unpack_from(data, begin)
        end = begin + HEADER.size + length + 4
        if not 0 < length <= LARGEST or end > len(data):
            break
        try:
            event = Event.FromString(data[begin + HEADER.size : end - 4])
        except Exception:  # protobuf's DecodeError has no public base class
            break
        for value in event.summary.value:
            if value.HasField("simple_value"):
                scalars[value.tag].append((event.step, event.wall_time, value.simple_value))
        begin = end
    return scalars


def read(folder: Path, data: bytes) -> Scalars:
    """Return the scalars of a file in the order of writing."""
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_bytes(data)
    reader = EventReader(folder)
    reader.refresh()
    return {tag: list(reader.written(tag)) for tag in reader.tags}


def same(one: Scalars, other: Scalars) -> bool:
    return {tag for tag in one if one[tag]} == {tag for tag in other if other[tag]} and all(
        np.array_equal(np.array(one[tag]), np.array(other[tag]), equal_nan=True) for tag in one if one[tag]
    )


def training(rng: random.Random, iterations: int) -> bytes:
    """Return the event file of a training whose rows are not all equal."""
    tags = [f"Group/{'t' * rng.randrange(60)}{number}" for number in range(rng.randrange(1, 9))]
    rare, is_constant = rng.choice((0.0, 0.02, 0.5)), rng.random() < 0.3
    step, parts = rng.choice((0, 100, 16_000, 2**21 - 50)), [record(Event(wall_time=1e9, file_version="brain.Event:2"))]
    for _ in range(iterations):
        step += not is_constant
        if rng.random() < 0.01:
            step = max(1, step - rng.randrange(60))
        for tag in tags:
            if rng.random() >= rare:
                value, passed_s = rng.choice((rng.gauss(0, 1), float("nan"))), rng.random()
                parts.append(scalar(tag, step, 0.5) if is_constant else scalar(tag, step, value, 1e9 + passed_s))
        if rng.random() < 0.01:
            parts.append(record(Event(wall_time=1e9, step=step, summary=Summary(value=[{"tag": "text"}]))))
        if rng.random() < 0.01:
            parts.append(scalar(tags[0], step, 1.0) + scalar(tags[0], step, 2.0))
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_read_as_protobuf_reads_them_record_by_record(tmp_path: Path, seed: int) -> None:
    data = training(random.Random(seed), 150)
    assert same(read(tmp_path / "logs", data), one_by_one(data))


@pytest.mark.parametrize("seed", range(60))
def test_damage_anywhere_ends_the_reading_where_it_would_without_rows(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(training(rng, 60))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if seed % 3 == 0:
        begin = rng.randrange(len(data))
        data[begin : begin + 512] = bytes(512)
    if seed % 4 == 0:
        del data[rng.randrange(len(data)) :]
    assert len(data) < CHUNK
    assert same(read(tmp_path / "logs", bytes(data)), one_by_one(bytes(data)))


def test_a_record_between_rows_of_equal_bytes_is_read_once(tmp_path: Path) -> None:
    row, other = scalar("a", 1, 0.5) + scalar("b", 1, 0.5), scalar("a", 1, 0.5)
    for count in range(5, 40):
        data = row * 3 + (row * count + other) * 8 + row * 200
        assert same(read(tmp_path / "logs", data), one_by_one(data))


def test_rows_over_several_chunks_are_read_whole_also_while_the_file_grows(tmp_path: Path) -> None:
    tags = [f"Train/metric_{number}" for number in range(150)]
    data = b"".join(scalar(tag, step, float(step)) for step in range(1, 101) for tag in tags)
    assert len(data) > 2 * CHUNK
    expected = one_by_one(data)
    assert same(read(tmp_path / "whole", data), expected)
    folder, rng, end = tmp_path / "grows", random.Random(0), 0
    folder.mkdir()
    reader = EventReader(folder)
    while end < len(data):
        end += rng.randrange(1, 100_000)
        (folder / NAME).write_bytes(data[:end])
        reader.refresh()
    assert same({tag: list(reader.written(tag)) for tag in reader.tags}, expected)


def test_a_million_points_are_read_in_a_moment(tmp_path: Path) -> None:
    """Record by record, they take two seconds on a machine of the year 2026."""
    one = b"".join(scalar(f"Train/metric_{number}", 2**20, 0.5) for number in range(20))
    (tmp_path / NAME).write_bytes(one * 50_000)
    reader = EventReader(tmp_path)
    begun = time.process_time()
    assert reader.refresh() == 1_000_000
    assert time.process_time() - begun < 1.0
