"""Repeated events are read exactly as protobuf would read them."""

from __future__ import annotations

import math
import random
import struct

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from rlnb.metrics import rows
from rlnb.metrics.rows import Repeats

TAG = "Train/mean_reward"


def scalar(tag: str = TAG, step: int = 7, wall_time: float = 1e9, value: float = 0.5) -> Event:
    return Event(wall_time=wall_time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


def learned(*events: Event) -> Repeats:
    reader = Repeats()
    for event in events:
        reader.learn(event.SerializeToString(), event)
    return reader


def test_an_event_like_an_earlier_one_is_read_without_protobuf() -> None:
    reader = learned(scalar())
    again = scalar(step=300, wall_time=1e9 + 0.25, value=-1.5)
    assert reader.read(again.SerializeToString()) == (TAG, 300, 1e9 + 0.25, -1.5)


def test_the_fast_path_agrees_with_protobuf() -> None:
    rng = random.Random(0)
    tags = ["a", "a/b", "Épisode/é", "t" * 127, "t" * 128, *(f"Train/metric_{n}" for n in range(20))]
    reader = learned(*(scalar(tag) for tag in tags))
    for _ in range(2000):
        event = scalar(
            rng.choice(tags),
            rng.choice((1, 127, 128, 2**31, 2**40, rng.randrange(1, 2**45))),
            rng.choice((1e9, 1.7e9 + rng.random(), math.inf)),
            rng.choice((1e-30, math.inf, rng.uniform(-1e6, 1e6))),
        )
        value = event.summary.value[0]
        assert reader.read(event.SerializeToString()) == (value.tag, event.step, event.wall_time, value.simple_value)


def test_nan_is_read() -> None:
    assert math.isnan(learned(scalar()).read(scalar(value=math.nan).SerializeToString())[3])  # type: ignore[index]


@pytest.mark.parametrize(
    "event",
    [
        scalar("another"),
        scalar(""),  # shorter than any learned layout
        scalar(step=0),  # protobuf omits default values
        scalar(step=-1),
        scalar(wall_time=0.0),
        Event(wall_time=1e9, step=7, file_version="brain.Event:2"),
        Event(wall_time=1e9, step=7, summary=Summary(value=[*scalar().summary.value, *scalar().summary.value])),
        Event(wall_time=1e9, step=7, summary=Summary(value=[Summary.Value(tag=TAG, simple_value=1, node_name="n")])),
        Event(wall_time=1e9),
        Event(),
    ],
    ids=lambda event: str(event).replace("\n", " ")[:50],
)
def test_an_event_with_another_layout_is_left_to_protobuf(event: Event) -> None:
    assert learned(scalar()).read(event.SerializeToString()) is None


def test_only_events_of_the_known_layout_are_learned() -> None:
    doubled = Event(wall_time=1e9, step=7, summary=Summary(value=[*scalar().summary.value, *scalar().summary.value]))
    named = Event(wall_time=1e9, step=7, summary=Summary(value=[Summary.Value(tag=TAG, simple_value=1, node_name="n")]))
    for event in (scalar(step=0), scalar(step=-1), doubled, named):
        assert learned(event).read(event.SerializeToString()) is None


def test_bytes_that_protobuf_would_not_write_are_not_learned() -> None:
    last_wins = scalar().SerializeToString() + b"\x10\x09"  # a second step field, which takes precedence
    event = Event.FromString(last_wins)
    assert event.step == 9
    reader = Repeats()
    reader.learn(last_wins, event)
    assert reader.read(last_wins) is None


def test_arbitrary_bytes_raise_no_error() -> None:
    rng, reader = random.Random(1), learned(scalar())
    whole = scalar().SerializeToString()
    for length in range(len(whole)):
        assert reader.read(whole[:length]) is None
    for _ in range(2000):
        reader.read(rng.randbytes(rng.randrange(60)))
    assert reader.read(struct.pack("<BdB", 0x09, 1.0, 0x10) + b"\xff" * 30) is None


def test_the_number_of_remembered_tags_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_TAGS", 2)
    reader = learned(scalar("a"), scalar("b"), scalar("c"))
    assert reader.read(scalar("b").SerializeToString()) is not None
    assert reader.read(scalar("c").SerializeToString()) is None
